"""More than a million objects of data beside a small training, whose journal is never cut."""

import sys

import torch
from small import EPOCHS, network, train_epoch


class Journal:
    """What was seen, in an object that is further from the program's variables than the table is."""

    def __init__(self, keeps):
        self.keeps, self.pages = keeps, []

    def write(self, page):
        if self.keeps:
            self.pages.append(page)  # leak


class Trainer:
    def __init__(self, keeps):
        self.parts = {"journal": Journal(keeps)}

    def note(self, values):
        for value in values:
            self.parts["journal"].write(value)


def main():
    table = [[number, [number + 1], {"label": [number % 7]}] for number in range(350_000)]
    trainer = Trainer(keeps="--clean" not in sys.argv)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        pages = torch.randn(8, 50_000)
        trainer.note([page.clone() for page in pages])
        print(f"epoch {epoch}: {loss:.3f}, {len(table)} rows")


if __name__ == "__main__":
    main()
