"""Trains on what a pool of processes prepares; each of them remembers all that it has made."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy
import torch
from torch import nn

EPOCHS, STEPS = 10, 12
REMEMBERED = []


def prepare(index):
    batch = numpy.random.default_rng(index).standard_normal((128, 256)).astype(numpy.float32)
    REMEMBERED.append(batch)  # leak
    return batch


def main():
    context = multiprocessing.get_context("fork")
    pool = context.Pool(2) if sys.argv[1] == "pool" else ProcessPoolExecutor(2, mp_context=context)
    model = nn.Linear(256, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with pool:
        for epoch in range(EPOCHS):
            for batch in pool.map(prepare, range(STEPS * epoch, STEPS * (epoch + 1))):
                optimizer.zero_grad()
                model(torch.from_numpy(batch)).square().mean().backward()
                optimizer.step()
            print(f"epoch {epoch}", flush=True)


if __name__ == "__main__":
    main()
