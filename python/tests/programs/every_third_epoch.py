"""A validation every third epoch keeps what the model gave, with its graph."""

import torch
from small import EPOCHS, batches, network, train_epoch


class Validation:
    def __init__(self, model):
        self.model = model
        self.seen = []

    def run(self):
        for images, _ in batches(4, seed=1):
            self.seen.append(self.model(images.repeat(16, 1, 1, 1)))  # leak


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    validation = Validation(model)
    for epoch in range(2 * EPOCHS):
        loss = train_epoch(model, optimizer)
        if epoch % 3 == 2:
            validation.run()
        print(f"epoch {epoch}: {loss:.3f}")


main()
