"""A filter carries its state from batch to batch without detaching it."""

import torch
from small import EPOCHS, batches, network, train_epoch
from torch import nn


class Smoother(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(24 * 24, 512)
        self.state = torch.zeros(8, 512)

    def forward(self, images):
        self.state = self.cell(images.flatten(1), self.state)  # leak
        return self.state.mean()


def main():
    model, smoother = network(), Smoother()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        for images, _ in batches(12, seed=epoch):
            level = smoother(images)
        print(f"epoch {epoch}: {level.item():.3f}")


main()
