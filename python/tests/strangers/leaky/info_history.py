"""Actor for a toy arm; a callback collects what the environment tells about each step, for the report of the episode."""

import numpy as np
import torch
from torch import nn


class Arm:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.angle = self.rng.uniform(-1, 1, 3)
        return self.angle.astype(np.float32)

    def step(self, torque):
        self.angle = np.clip(self.angle + 0.1 * torque, -2, 2)
        info = {
            "torque": torque,
            "camera": self.rng.random((24, 24), dtype=np.float32),
            "reach": float(np.abs(self.angle).sum()),
        }
        return self.angle.astype(np.float32), -float(np.abs(self.angle).sum()), info


class EpisodeReport:
    def __init__(self):
        self.series = {}
        self.length = 0

    def on_step(self, info):
        self.length += 1
        for key, value in info.items():
            self.series.setdefault(key, []).append(value)  # diagnostic: [unbounded-history]

    def on_end(self):
        reach = float(np.mean(self.series["reach"][-self.length :]))
        self.length = 0
        return reach


def play(actor, arm, report, length=30):
    state, gains, chances = arm.reset(), [], []
    for _ in range(length):
        spread = torch.distributions.Normal(actor(torch.from_numpy(state)), 0.3)
        torque = spread.sample()
        chances.append(spread.log_prob(torque).sum())
        state, gain, info = arm.step(torque.numpy())
        report.on_step(info)
        gains.append(gain)
    return torch.stack(chances), torch.tensor(gains)


def main(epochs=12, episodes=10):
    torch.manual_seed(24)
    actor = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 3))
    opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
    arm, report = Arm(0), EpisodeReport()
    for epoch in range(1, epochs + 1):
        reaches = []
        for _ in range(episodes):
            chances, gains = play(actor, arm, report)
            loss = -(chances * (gains - gains.mean())).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            reaches.append(report.on_end())
        print(f"epoch {epoch}: reach {np.mean(reaches):.4f}", flush=True)


if __name__ == "__main__":
    main()
