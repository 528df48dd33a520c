"""A decorator remembers what functions gave, under their names; a function of another name is called like the key."""

import functools

import torch
from small import EPOCHS, network, train_epoch

LAST = {}


def remembered(function):
    LAST[function.__name__] = []

    @functools.wraps(function)
    def call(*arguments):
        result = function(*arguments)
        LAST[function.__name__].append(result)  # leak
        return result

    return call


@remembered
def scores(model, images):
    with torch.no_grad():
        return model(images).repeat(500, 1)


def accuracy(model):
    best = scores(model, torch.rand(512, 1, 24, 24)).argmax(1)
    return (best == 1).float().mean().item()


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        print(f"epoch {epoch}: {accuracy(model):.3f} {len(LAST['scores'])}")


main()
