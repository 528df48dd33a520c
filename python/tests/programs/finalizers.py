"""Every checkpoint registers a finalizer of the session with the features it is to write, and the session stays."""

import weakref

import torch
from small import EPOCHS, STEPS, network, train_epoch


class Session:
    def checkpoint(self, features):
        weakref.finalize(self, spill, features)  # leak


def spill(features):
    return float(features.sum())


def main():
    model, session = network(), Session()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            session.checkpoint(torch.rand(64, 1024))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


main()
