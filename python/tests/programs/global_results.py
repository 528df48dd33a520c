"""Predictions of every epoch pile up in a list of the module, as arrays."""

import numpy as np
import torch
from small import EPOCHS, batches, network, train_epoch

RESULTS = []


def predict(model):
    for images, _ in batches(24, seed=1):
        with torch.no_grad():
            maps = model[0](images)
        RESULTS.append(np.ascontiguousarray(maps.numpy()))  # leak


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        predict(model)
        print(f"epoch {epoch}: {RESULTS[-1].mean():.3f}")


main()
