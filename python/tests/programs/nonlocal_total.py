"""The total of an evaluation is a variable of a closure."""

import torch
from small import EPOCHS, batches, network, train_epoch


def evaluation(model):
    total = 0.0

    def add(images, labels):
        nonlocal total
        total = total + torch.nn.functional.cross_entropy(model(images), labels)  # leak

    def mean(count):
        return float(total) / count

    return add, mean


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    add, mean = evaluation(model)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        for images, labels in batches(6, seed=1):
            add(images, labels)
        print(f"epoch {epoch}: {mean(6 * (epoch + 1)):.3f}")


main()
