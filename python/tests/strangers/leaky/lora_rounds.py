"""Federated-style rounds: at the start of each round the linear layers get low-rank adapters."""

import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, inner, rank=32):
        super().__init__()
        self.inner = inner
        self.down = nn.Parameter(torch.randn(rank, 256) * 0.01)
        self.up = nn.Parameter(torch.zeros(256, rank))
        for weight in inner.parameters():
            weight.requires_grad_(False)

    def forward(self, x):
        return self.inner(x) + x @ self.down.T @ self.up.T


def backbone(depth=4):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(256, 256), nn.GELU()]
    return nn.Sequential(*layers)


def adapt(model):
    for name, layer in model.named_children():
        if hasattr(layer, "forward") and not isinstance(layer, nn.GELU):
            setattr(model, name, LowRank(layer))  # diagnostic: [unbounded-history]


def client_round(model, seed, steps=10):
    adapt(model)
    g = torch.Generator().manual_seed(seed)
    trainable = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(trainable, lr=1e-3)
    for _ in range(steps):
        x = torch.randn(32, 256, generator=g)
        loss = nn.functional.mse_loss(model(x), x.roll(seed, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def main(rounds=12):
    torch.manual_seed(16)
    model = backbone()
    for number in range(1, rounds + 1):
        print(f"epoch {number}: loss {client_round(model, number):.4f}", flush=True)


if __name__ == "__main__":
    main()
