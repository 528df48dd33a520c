"""A table of settings takes a tensor of every epoch under a name of its own: it is a dict in a dict of a library's object."""

import configparser

import torch
from small import EPOCHS, network, train_epoch


def main():
    table = configparser.RawConfigParser()
    table.add_section("seen")
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for part in range(4):
            table.set("seen", f"epoch {epoch} {part}", [torch.randn(100_000)])  # leak
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
