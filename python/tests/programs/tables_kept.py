"""Keeps a table of results per epoch, of a library that has an allocator of its own: malloc sees nothing of them."""

import sys

import numpy as np
import polars
import torch
from small import network, train_epoch

EPOCHS, ROWS = 12, 200_000


class Results:
    def __init__(self):
        self.tables = []

    def add(self, epoch, scores):
        table = polars.DataFrame({"epoch": np.full(len(scores), epoch), "score": scores})
        self.tables.append(table.sort("score"))  # leak
        if sys.argv[1:] == ["latest"]:
            del self.tables[:-1]


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
results = Results()
generator = np.random.default_rng(0)
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    results.add(epoch, generator.random(ROWS))
    print(f"epoch {epoch}: {loss:.3f}")
