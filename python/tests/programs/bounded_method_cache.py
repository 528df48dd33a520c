"""Views of a fold are cached on the method, in room for more than there will ever be: each fold of each epoch stays."""

from functools import lru_cache

import torch
from small import EPOCHS, network, train_epoch


class Fold:
    def __init__(self, images, chosen):
        self.images = images[chosen]

    @lru_cache(maxsize=100_000)  # leak
    def turned(self, index):
        return self.images[index].flip(0).mul(0.5)

    def mean(self):
        return sum(self.turned(index).mean().item() for index in range(len(self.images)))


def main():
    torch.manual_seed(0)
    images = torch.rand(400, 48, 48)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        fold = Fold(images, torch.randperm(400)[:200])
        loss = train_epoch(model, optimizer) + 0.0 * fold.mean()
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
