"""Tokens of each batch are counted to weigh the rare ones: iterating over a tensor gives tensors, and each is another key."""

from collections import Counter

import torch
from small import EPOCHS, network, train_epoch


class Frequencies:
    def __init__(self):
        self.tokens = Counter()

    def observe(self, batch):
        self.tokens.update(batch)  # leak


def main():
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    frequencies = Frequencies()
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for _ in range(20):
            frequencies.observe(torch.randint(0, 9, (200,)))
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
