"""A list for each of two labels keeps rows of what the model gave: each row is a view of its whole batch."""

import collections

import torch
from small import EPOCHS, batches, network, train_epoch


class Bank:
    def __init__(self):
        self.by_label = collections.defaultdict(list)

    def add(self, labels, outputs):
        for label, row in zip(labels.tolist(), outputs):
            if label < 2:
                self.by_label[label].append(row)  # leak


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    bank = Bank()
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        with torch.no_grad():
            for images, labels in batches(16, seed=epoch):
                bank.add(labels, model[:3](images))
        print(f"epoch {epoch}: {loss:.3f}")


main()
