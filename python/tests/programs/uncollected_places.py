"""Scenes that refer to themselves, in a program that has switched the collector off. They lie where rows lay that were there when
the training began."""

import gc

import torch
from small import EPOCHS, network, train_epoch

gc.disable()


class Part:
    def __init__(self, scene):
        self.scene = scene  # leak


class Scene:
    def __init__(self, parts):
        self.pixels = torch.rand(512, 512)
        self.parts = [Part(self) for _ in range(parts)]


class Row:
    def __init__(self, scene):
        self.scene = scene


def main():
    rows = [Row([]) for _ in range(20_000)]
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        if epoch > 0:
            del rows[-2000:]
            mean = sum(Scene(100).pixels.mean().item() for _ in range(5))
            print(f"epoch {epoch}: {loss:.3f} {mean:.2f}")


main()
