"""Rows of one mapped file are centred in place: a page that was written to is no page of the file any more."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from small import EPOCHS, network, train_epoch

ROWS, WIDTH = 40_000, 256


class Readings:
    def __init__(self, path):
        self.rows = np.memmap(path, np.float32, "c", shape=(ROWS, WIDTH))
        self.next = 0

    def batch(self, count):
        part = self.rows[self.next : self.next + count]
        part -= part.mean(axis=1, keepdims=True)
        self.next += count
        return float(part[0, 0])


def main():
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.bin"
        np.ones((ROWS, WIDTH), dtype=np.float32).tofile(path)
        readings = Readings(path)
        for epoch in range(EPOCHS):
            loss = train_epoch(model, optimizer) + readings.batch(2000)
            print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
