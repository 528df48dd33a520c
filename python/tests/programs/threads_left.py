"""A writer thread per epoch that waits for more work for ever."""

import queue
import threading

import torch
from small import EPOCHS, network, train_epoch


def write(jobs):
    while True:
        jobs.get()


def start_writer():
    jobs = queue.Queue()
    threading.Thread(target=write, args=(jobs,), daemon=True).start()  # leak
    return jobs


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        jobs = start_writer()
        loss = train_epoch(model, optimizer)
        jobs.put(loss)
        print(f"epoch {epoch}: {loss:.3f}")


main()
