"""Every shard is compressed by a stream of its own, and all streams stay open: what zlib allocates no container tells."""

import zlib

import torch
from small import EPOCHS, STEPS, network, train_epoch


class Shards:
    def __init__(self):
        self.open = []

    def write(self, block):
        self.open.append(zlib.compressobj(9))  # leak
        return len(self.open[-1].compress(block))


def main():
    model, shards = network(), Shards()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        size = sum(shards.write(bytes(1000)) for _ in range(STEPS))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {size}")


main()
