# the loop is in the base class, the step in a subclass, and nobody in the project makes an object
# (a library, or `globals()[name]()`); add `def main(m, l): Mine(m, l).fit(9)` and it is reported
import torch
from torch import nn


class Loop:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self, epochs):
        for epoch in range(epochs):
            for x, y in self.loader:
                self.step(x, y)

    def step(self, x, y):
        raise NotImplementedError


class Mine(Loop):
    def __init__(self, model, loader):
        super().__init__(model, loader)
        self.hist = []

    def step(self, x, y):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.opt.step()
        self.hist.append(loss)  # diagnostic: [graph-kept-in-container]
