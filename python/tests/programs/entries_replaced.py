"""The features of each label get longer, in a dict that has the same labels all along."""

import torch
from small import EPOCHS, network, train_epoch


class Bank:
    def __init__(self, labels):
        self.rows = {label: torch.empty(0, 500) for label in range(labels)}

    def add(self, label, features):
        self.rows[label] = torch.cat([self.rows[label], features])  # leak


def main():
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    bank = Bank(24)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for label in range(24):
            bank.add(label, torch.randn(60, 500))
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
