"""A list of tensors that is written out and made anew every third epoch: memory falls as often, to where it was."""

import os

import torch
from small import STEPS, network, train_epoch

EPOCHS = 12


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pending = []
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        for _ in range(STEPS):
            pending.append(torch.randn(256, 512))
        if epoch % 3 == 2:
            torch.save(torch.stack(pending), os.devnull)
            pending = []
        print(f"epoch {epoch}")


main()
