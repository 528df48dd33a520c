"""Two readers share a stream of arrays, which the collector does not track: one of them stops early in each epoch."""

import itertools

import numpy as np
import torch
from small import EPOCHS, network, train_epoch


def stream():
    random = np.random.default_rng(0)
    while True:
        yield random.random((64, 256))


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows, beside = itertools.tee(stream())  # leak
    for epoch in range(EPOCHS):
        mean = np.mean([row.mean() for row in itertools.islice(rows, 24)])
        seen = np.mean([row.mean() for row in itertools.islice(beside, 4)])
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {mean - seen:.4f}")


main()
