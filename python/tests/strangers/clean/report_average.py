"""Flow network on a grid; the parts of the loss are reported as running averages, the second part is only looked at."""

import torch
from torch import nn


class Averages:
    def __init__(self, decay):
        self.decay = decay
        self.value = {}

    def update(self, parts):
        for kind, part in parts.items():
            part = part.item()
            old = self.value.get(kind, part)
            self.value[kind] = self.decay * old + (1 - self.decay) * part

    def line(self):
        return ", ".join(f"{kind} {float(value):.4f}" for kind, value in self.value.items())


class Flow(nn.Module):
    def __init__(self, cells=64, width=96):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(cells, width), nn.LeakyReLU(), nn.Linear(width, width), nn.LeakyReLU())
        self.inflow, self.outflow = nn.Linear(width, 1), nn.Linear(width, 4)

    def forward(self, cell):
        hidden = self.trunk(cell)
        return self.inflow(hidden).squeeze(1), self.outflow(hidden).logsumexp(1)


def parts_of(flow, count=128):
    cell = nn.functional.one_hot(torch.randint(0, 64, (count,)), 64).float()
    inner_in, inner_out = flow(cell)
    last_in, _ = flow(cell.roll(1, 1))
    return {"inner": (inner_in - inner_out).pow(2).mean(), "last": (last_in - 1).abs().mean()}


def main(epochs=12, steps=10):
    torch.manual_seed(21)
    flow, averages = Flow(), Averages(0.9)
    opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
    for epoch in range(1, epochs + 1):
        for _ in range(steps):
            parts = parts_of(flow)
            opt.zero_grad()
            parts["inner"].backward()
            opt.step()
            averages.update(parts)
        print(f"epoch {epoch}: {averages.line()}", flush=True)


if __name__ == "__main__":
    main()
