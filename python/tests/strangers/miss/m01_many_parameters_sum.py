# the running sum of a loss that depends on four or more nn.Parameters; with three it is reported,
# and `kept.append(loss)` is reported whatever the number
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(3))
        self.b = nn.Parameter(torch.zeros(3))
        self.c = nn.Parameter(torch.zeros(3))
        self.d = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return x * self.a + self.b + self.c.exp() * self.d


def main(loader, epochs):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    crit = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        running = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = crit(net(x), y)
            loss.backward()
            opt.step()
            running += loss  # diagnostic: [loss-kept-with-graph]
        print(running / len(loader))
