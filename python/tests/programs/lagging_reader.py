"""Two readers share one stream: one takes every batch, the other looks at a few of each epoch."""

import itertools

import torch
from small import EPOCHS, STEPS, batches, network
from torch import nn


class Statistics:
    def __init__(self, source):
        self.source = source
        self.means = []

    def look(self, count):
        self.means = [images.mean().item() for images, _ in itertools.islice(self.source, count)]


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stream, beside = itertools.tee(batches(EPOCHS * STEPS))  # leak
    statistics = Statistics(beside)
    for epoch in range(EPOCHS):
        statistics.look(2)
        total = 0.0
        for images, labels in itertools.islice(stream, STEPS):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.repeat(4, 1, 1, 1)), labels.repeat(4))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / STEPS:.3f} {max(statistics.means):.3f}")


main()
