"""Every epoch makes a pool of processes, and the pools are kept."""

import multiprocessing

import torch
from small import EPOCHS, network, train_epoch


def measure(size):
    return torch.rand(size).sum().item()


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    pools = []
    for epoch in range(EPOCHS):
        pool = multiprocessing.get_context("fork").Pool(2)  # leak
        pools.append(pool)
        sizes = pool.map(measure, range(4))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {sum(sizes):.1f}")


main()
