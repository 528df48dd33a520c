# no edit may detach the memory inside one forward pass: gradients change (measured: 12.5 -> 11.2, 105 -> 84)
import torch
from torch import nn


class Recall(nn.Module):
    def __init__(self, dim, steps):
        super().__init__()
        self.dim = dim
        self.steps = steps
        self.erase = nn.Linear(dim, dim)
        self.add = nn.Linear(dim, dim)

    def _fresh(self, n):
        self._mem = torch.zeros(n, self.dim)

    def _write(self, x):
        self._before = self._mem
        self._mem = self._before * (1 - self.erase(x).sigmoid()) + self.add(x).tanh()

    def forward(self, x):
        self._fresh(len(x))
        for i in range(self.steps):
            self._write(x[:, i])
        return self._mem.sum(-1)


def train(loader, epochs):
    net = Recall(8, 50)
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(epochs):
        for x, y in loader:
            loss = (net(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
