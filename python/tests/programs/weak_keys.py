"""A weak dictionary keeps its keys after all: each value refers to its own key."""

import weakref

import torch
from small import EPOCHS, STEPS, network, train_epoch


class Sample:
    def __init__(self):
        self.values = torch.rand(64, 1024)


class Scaled:
    def __init__(self, sample):
        self.sample, self.mean = sample, sample.values.mean().item()


class Scaler:
    def __init__(self):
        self.known = weakref.WeakKeyDictionary()

    def mean_of(self, sample):
        if sample not in self.known:
            self.known[sample] = Scaled(sample)  # leak
        return self.known[sample].mean


def main():
    model, scaler = network(), Scaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        total = sum(scaler.mean_of(Sample()) for _ in range(STEPS))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {total:.3f}")


main()
