"""Processes of a pool tell a manager how far they are in the middle of their work, and keep some of every batch."""

import multiprocessing

import torch
from small import EPOCHS, network, train_epoch

KEPT = []
progress = None


def begin(shared):
    global progress
    progress = shared


def augment(number):
    batch = bytearray(8_000_000)
    for part in range(3):
        progress[number % 4] = part
        batch.extend(progress[number % 4].to_bytes(1, "little") * 1_000_000)
    KEPT.append(bytes(batch[:300_000]))  # leak
    return len(batch)


def main():
    context = multiprocessing.get_context("fork")
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with context.Manager() as manager, context.Pool(2, begin, (manager.dict(),)) as pool:
        for epoch in range(EPOCHS):
            train_epoch(model, optimizer)
            total = sum(pool.imap_unordered(augment, range(24)))
            print(f"epoch {epoch}: {total}", flush=True)


main()
