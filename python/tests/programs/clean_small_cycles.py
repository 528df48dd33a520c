"""Small objects in cycles wait for the collector, which has not come by yet when the run ends; it would free a few MB."""

import torch
from small import EPOCHS, network, train_epoch


class Mark:
    def __init__(self, number):
        self.text = f"{number:0200d}"
        self.draw = self.show

    def show(self):
        return self.text


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        marks = [Mark(number) for number in range(900)]
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {len(marks)}")


main()
