"""Trains an autoencoder on made waves with noise, with an Ignite engine for training and one for validation."""

import argparse
import logging
import tempfile
import time

import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver, ModelCheckpoint
from ignite.metrics import Metric, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LENGTH = 256


def waves(count, seed):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: torch.rand(count, 1, generator=generator)  # noqa: E731
    time_axis = torch.linspace(0, 6.283, LENGTH)
    first = torch.sin(time_axis * (1 + 6 * draw()) + 6 * draw())
    second = 0.5 * torch.sin(time_axis * (8 + 8 * draw()) + 6 * draw())
    return (first + second)[:, None]


class Autoencoder(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3),
            nn.GELU(),
            nn.Conv1d(16, 32, 7, stride=2, padding=3),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(32 * LENGTH // 4, code),
        )
        self.decoder = nn.Sequential(nn.Linear(code, 256), nn.GELU(), nn.Linear(256, LENGTH))

    def forward(self, wave):
        return self.decoder(self.encoder(wave))[:, None]


class SignalToNoise(Metric):
    """Mean ratio of signal to error, in decibels."""

    def __init__(self, by_wave=False):
        self.by_wave = by_wave
        self.errors = []
        super().__init__(output_transform=lambda output: output)

    def reset(self):
        self._total, self._count = 0.0, 0

    def update(self, output):
        prediction, target = output
        error = (prediction - target).squeeze(1)
        ratio = target.squeeze(1).pow(2).mean(1) / error.pow(2).mean(1)
        self._total += float(10 * ratio.log10().sum())
        self._count += len(ratio)
        if self.by_wave:
            self.errors.append(error)  # leak: metric

    def compute(self):
        return self._total / max(self._count, 1)


class NoiseBand:
    """Noise within a band of frequencies; its table is drawn once."""

    def __init__(self, seed, rows=512):
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.randn(rows, LENGTH, generator=generator).cumsum(1) * 0.01
        self.used = 0

    def __call__(self, engine):
        self.used += 1

    def add(self, wave):
        rows = torch.randint(len(self.table), (len(wave),))
        return wave + self.table[rows][:, None]


class Session:
    def __init__(self, options, folder):
        self.leak = options.leak
        self.model = Autoencoder()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.loss = nn.MSELoss()
        self.noise = NoiseBand(0)
        self.loader = DataLoader(TensorDataset(waves(options.size, 1)), batch_size=64, shuffle=True)
        self.held_out = DataLoader(TensorDataset(waves(options.size // 4, 2)), batch_size=64)
        self.trainer, self.evaluator = Engine(self.update), Engine(self.evaluate)
        self.started = time.perf_counter()
        self.attach(folder)

    def update(self, engine, batch):
        (wave,) = batch
        self.model.train()
        restored = self.model(self.noise.add(wave))
        loss = self.loss(restored, wave)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.item(), "restored": restored.detach()}

    @torch.no_grad()
    def evaluate(self, engine, batch):
        (wave,) = batch
        self.model.eval()
        return self.model(self.noise.add(wave)), wave

    def attach(self, folder):
        RunningAverage(output_transform=lambda output: output["loss"]).attach(self.trainer, "loss")
        SignalToNoise(by_wave=self.leak == "metric").attach(self.evaluator, "decibels")
        self.trainer.add_event_handler(Events.STARTED, self.prepare)
        if self.leak == "engine-state":
            self.trainer.add_event_handler(Events.ITERATION_COMPLETED(every=5), self.remember)
        if self.leak == "handlers":
            self.trainer.add_event_handler(Events.EPOCH_STARTED, self.new_noise)
        self.trainer.add_event_handler(Events.EPOCH_COMPLETED, self.validate)
        saver = DiskSaver(folder, create_dir=True, require_empty=False)
        best = Checkpoint({"model": self.model}, saver, n_saved=1, score_name="decibels", score_function=self.score)
        self.evaluator.add_event_handler(Events.COMPLETED, best)
        last = ModelCheckpoint(folder, "last", n_saved=1, require_empty=False)
        self.trainer.add_event_handler(Events.EPOCH_COMPLETED(every=4), last, {"model": self.model})

    def score(self, engine):
        return engine.state.metrics["decibels"]

    def prepare(self, engine):
        engine.state.restored = []

    def remember(self, engine):
        engine.state.restored.append(engine.state.output["restored"])  # leak: engine-state

    def new_noise(self, engine):
        self.noise = NoiseBand(engine.state.epoch)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self.noise)  # leak: handlers

    def validate(self, engine):
        self.evaluator.run(self.held_out)
        loss, decibels = engine.state.metrics["loss"], self.evaluator.state.metrics["decibels"]
        seconds = time.perf_counter() - self.started
        print(f"epoch {engine.state.epoch}: loss {loss:.4f}, {decibels:.2f} dB, {seconds:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--size", type=int, default=14_000, help="waves of an epoch")
    parser.add_argument("--leak", choices=["engine-state", "metric", "handlers"])
    options = parser.parse_args()
    logging.getLogger("ignite").setLevel(logging.ERROR)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        session = Session(options, folder)
        session.trainer.run(session.loader, max_epochs=options.epochs)


if __name__ == "__main__":
    main()
