# `[0] * n` (and torch.zeros(n)) as accumulators; with `[0, 0, 0]` or `[0 for _ in range(n)]` it is reported
import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self, net, n):
        super().__init__()
        self.net = net
        self.parts = [0] * (n + 1)

    def forward(self, a, b):
        loss = torch.abs(self.net(a) - self.net(b)).mean()
        self.parts[-1] += loss  # diagnostic: [loss-kept-with-graph]
        return loss


def train(model, loader, opt):
    crit = Distance(nn.Linear(3, 3), 3)
    for epoch in range(100):
        for x, y in loader:
            loss = crit(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
