"""Relaxes a batch of particles in a learned potential while the potential is fitted to reference forces."""

import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.pair = nn.Sequential(
            nn.Linear(1, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
        )

    def forward(self, places):
        gap = (places.unsqueeze(0) - places.unsqueeze(1)).pow(2).sum(-1, keepdim=True)
        return self.pair(gap.reshape(-1, 1)).sum()

    def forces(self, places):
        places = places.detach().requires_grad_()
        return -torch.autograd.grad(self(places), places, create_graph=True)[0]


class Relaxer:
    """Quasi-Newton steps; the last `keep` differences of forces are kept."""

    def __init__(self, places, keep=6):
        self.places = places
        self.keep = keep
        self.forces = torch.zeros_like(places)
        self.changes = torch.zeros(0, *places.shape)

    def step(self, potential):
        forces = potential.forces(self.places)
        change = forces - self.forces
        self.changes = torch.cat([self.changes, change.unsqueeze(0)])[
            -self.keep :
        ]  # diagnostic: [loss-kept-with-graph]
        self.forces = forces.detach()
        scale = self.changes.detach().pow(2).mean().sqrt()
        self.places = self.places + 0.01 * self.forces / (scale + 1e-2)


def main(epochs=12, steps=8):
    torch.manual_seed(14)
    potential = Potential()
    opt = torch.optim.Adam(potential.parameters(), lr=1e-3)
    relaxer = Relaxer(torch.randn(12, 3))
    for epoch in range(1, epochs + 1):
        for _ in range(steps):
            places = torch.randn(12, 3)
            loss = (potential.forces(places) + places * 0.1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        for _ in range(steps):
            relaxer.step(potential)
        print(f"epoch {epoch}: loss {loss.item():.5f}, relaxed to {relaxer.forces.abs().max().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
