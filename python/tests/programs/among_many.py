"""A hundred meters keep a number at each step, and a list keeps a tensor in each epoch."""

import torch
from small import EPOCHS, network, train_epoch


class Meter:
    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    meters, kept = [Meter() for _ in range(100)], []
    for epoch in range(EPOCHS + 4):
        loss = train_epoch(model, optimizer)
        for meter in meters:
            for step in range(40):
                meter.add(loss + step)
        kept.append(torch.randn(1000, 1000))  # leak
        print(f"epoch {epoch}: {loss:.3f}")


main()
