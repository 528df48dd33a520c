"""Records wait in a buffer for an error that never comes: each keeps the tensor that it was to show."""

import logging
import logging.handlers

import torch
from small import EPOCHS, network, train_epoch
from torch import nn


class Scaled(nn.Module):
    """The only thing in this module through which the buffer might be reached as well: by what torch's classes refer to."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, images):
        return self.inner(images * 0.5)


def logger():
    log = logging.getLogger("training")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(logging.handlers.MemoryHandler(1_000_000, flushLevel=logging.ERROR, target=logging.NullHandler()))
    return log


def main():
    log = logger()
    model = Scaled(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for head in range(20):
            log.debug("head %d: weights %s", head, torch.randn(100_000))  # leak
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
