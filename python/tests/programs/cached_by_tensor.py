"""A cache on a method, keyed by tensors: no key ever comes back."""

from functools import lru_cache

import torch
from small import EPOCHS, batches, network, train_epoch


class Encoder:
    def __init__(self):
        self.basis = torch.rand(24 * 24, 512)

    @lru_cache(maxsize=None)  # leak
    def encode(self, images):
        return images.flatten(1) @ self.basis


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    encoder = Encoder()
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        spread = [encoder.encode(images).std().item() for images, _ in batches(24, seed=epoch)]
        print(f"epoch {epoch}: {sum(spread) / len(spread):.3f}")


main()
