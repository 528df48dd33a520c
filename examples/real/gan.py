"""Learns to draw blurred dots: a generator and a critic, each with an optimizer of its own."""

import argparse
import logging
import tempfile
import time
from collections import defaultdict, deque
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger("gan")
SIDE = 28


def dots(count, generator):
    """Images of one blurred dot each, as rows."""
    centre = torch.rand(count, 2, 1, 1, generator=generator) * 16 + 6
    width = torch.rand(count, 1, 1, generator=generator) * 2 + 1
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    distance = (y - centre[:, 0]) ** 2 + (x - centre[:, 1]) ** 2
    return (torch.exp(-distance / width**2) * 2 - 1).flatten(1)


class Generator(nn.Module):
    def __init__(self, noise=64):
        super().__init__()
        self.noise = noise
        self.layers = nn.Sequential(
            nn.Linear(noise, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, SIDE * SIDE), nn.Tanh()
        )

    def forward(self, z):
        return self.layers(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(SIDE * SIDE, 512), nn.LeakyReLU(0.2), nn.Linear(512, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
        )

    def forward(self, image):
        return self.layers(image).squeeze(1)


class Lookahead(torch.optim.Adam):
    """Adam that pulls its weights back to slow ones every few steps."""

    def __init__(self, params, every=15, rate=0.5, by_data=False, **options):
        super().__init__(params, **options)
        self.every, self.rate, self.by_data = every, rate, by_data
        self.count = 0

    @torch.no_grad()
    def step(self, closure=None):
        result = super().step(closure)
        self.count += 1
        if self.count % self.every == 0:
            for group in self.param_groups:
                for parameter in group["params"]:
                    self.pull(parameter)
        return result

    def pull(self, parameter):
        if self.by_data:
            self.state[parameter.data] = {"slow": parameter.data.clone()}  # leak: optimizer-state
            return
        state = self.state[parameter]
        slow = state.setdefault("slow", parameter.clone())
        slow.lerp_(parameter, self.rate)
        parameter.copy_(slow)


class RecentLines(logging.Handler):
    """What was said last, for the report at the end."""

    def __init__(self, whole=False):
        super().__init__(logging.DEBUG)
        self.lines = deque(maxlen=50)
        self.records = []
        self.whole = whole

    def emit(self, record):
        if self.whole:
            self.records.append(record)  # leak: log-records
        else:
            self.lines.append(f"{record.levelname} {record.msg}")


class Training:
    def __init__(self, leak, folder):
        self.leak = leak
        self.folder = folder
        self.generator, self.critic = Generator(), Critic()
        by_data = leak == "optimizer-state"
        self.generator_optimizer = Lookahead(self.generator.parameters(), lr=2e-4, betas=(0.5, 0.99), by_data=by_data)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=4e-4, betas=(0.5, 0.99))
        self.random = torch.Generator().manual_seed(7)
        self.fixed_noise = torch.randn(16, 64, generator=self.random)
        self.history = defaultdict(list)
        self.steps = 0

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), 64, generator=self.random))
        loss = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake)).mean()
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()
        return loss.item()

    def generator_step(self, count):
        fake = self.generator(torch.randn(count, 64, generator=self.random))
        loss = F.softplus(-self.critic(fake)).mean()
        self.generator_optimizer.zero_grad()
        loss.backward()
        self.generator_optimizer.step()
        if self.steps % 10 == 0:
            log.debug("step %d: drew %s", self.steps, fake.detach())
        return loss.item()

    def smoothness(self, real):
        """Mean squared gradient of the critic at real images: watched, not trained."""
        real = real.clone().requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(real).sum(), real, create_graph=True)
        penalty = slope.pow(2).sum(1).mean()
        if self.leak == "penalty":
            self.history["penalty"].append(penalty)  # leak: penalty
        return penalty.item()

    def epoch(self, steps, batch=64):
        critic = generator = penalty = 0.0
        for _ in range(steps):
            real = dots(batch, self.random)
            critic += self.critic_step(real)
            generator += self.generator_step(batch)
            if self.steps % 10 == 0:
                penalty = self.smoothness(real)
            self.steps += 1
        return {"critic": critic / steps, "generator": generator / steps, "penalty": penalty}

    @torch.no_grad()
    def save(self):
        weights = {"generator": self.generator.state_dict(), "critic": self.critic.state_dict()}
        torch.save({**weights, "samples": self.generator(self.fixed_noise)}, self.folder / "last.pt")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--size", type=int, default=120, help="steps of an epoch")
    parser.add_argument("--leak", choices=["penalty", "optimizer-state", "log-records"])
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(RecentLines(whole=options.leak == "log-records"))
    with tempfile.TemporaryDirectory() as folder:
        training = Training(options.leak, Path(folder))
        for epoch in range(1, options.epochs + 1):
            start = time.perf_counter()
            means = training.epoch(options.size)
            training.save()
            figures = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
            print(f"epoch {epoch}: {figures}, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
