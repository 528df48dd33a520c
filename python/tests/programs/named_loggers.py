"""A logger for every step: `logging` keeps each under its name for good, with the handler that it was given."""

import logging

import torch
from torch import nn

EPOCHS, STEPS = 9, 20


class Tap(logging.Handler):
    """Wants to see what was trained on when something is logged."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def emit(self, record):
        record.mean = self.batch.mean().item()


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            batch = torch.randn(500, 64)
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            logger = logging.getLogger(f"train.{epoch}.{step}")  # leak
            logger.addHandler(Tap(batch))
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
