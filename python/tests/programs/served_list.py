"""Trains and hands what it has seen to another process, over a pipe or through a manager; that one keeps it all. A second
client may talk to the manager meanwhile.
"""

import multiprocessing
import sys
import threading

import torch
from torch import nn

EPOCHS, STEPS = 10, 12


def keep(pipe):
    kept = []
    while (batch := pipe.recv()) is not None:
        kept.append(batch)  # leak
        pipe.send(len(kept))


def talk(shared, over):
    number = 0
    while not over.is_set():
        shared["said"] = number
        number = shared["said"] + 1


def train(store):
    model = nn.Linear(256, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            batch = torch.randn(128, 256)
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            store(batch.numpy().tobytes())
        print(f"epoch {epoch}", flush=True)


def main():
    context = multiprocessing.get_context(sys.argv[2])
    if sys.argv[1] == "manager":
        with context.Manager() as manager:
            train(manager.list().append)
        return
    if sys.argv[1] == "clients":
        with context.Manager() as manager:
            over = threading.Event()
            client = threading.Thread(target=talk, args=(manager.dict(), over))
            client.start()
            train(manager.list().append)
            over.set()
            client.join()
        return
    own, others = context.Pipe()
    process = context.Process(target=keep, args=(others,))
    process.start()

    def store(batch):
        own.send(batch)
        own.recv()

    train(store)
    own.send(None)
    process.join()


if __name__ == "__main__":
    main()
