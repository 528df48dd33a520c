"""A mock stands in for the board that a training writes to: it records each call, with the tensors that it was given."""

from unittest import mock

import torch
from small import EPOCHS, batches, network


def train(model, optimizer, board, epoch):
    for images, labels in batches(6, seed=epoch):
        outputs = model(images)
        loss = torch.nn.functional.cross_entropy(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        board.add_images("inputs", images.repeat(16, 1, 1, 1), epoch)  # leak


def main():
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    board = mock.Mock()
    for epoch in range(EPOCHS):
        train(model, optimizer, board, epoch)
        print(f"epoch {epoch}")


main()
