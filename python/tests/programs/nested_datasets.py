"""Every epoch puts the data so far and the new data into one more dataset."""

import torch
from small import EPOCHS, network, train_epoch
from torch.utils.data import ConcatDataset, TensorDataset


class Pool:
    def __init__(self):
        self.data = TensorDataset(torch.rand(1, 1024))

    def add(self, rows):
        self.data = ConcatDataset([self.data, TensorDataset(rows)])  # leak
        return len(self.data)


def main():
    model, pool = network(), Pool()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        size = pool.add(torch.rand(1024, 1024))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {size}")


main()
