"""A pair of sockets per epoch, of which only numbers are kept, and the threads of a pool that nobody shuts down."""

import socket
from concurrent.futures import ThreadPoolExecutor

import torch
from small import EPOCHS, network, train_epoch

POOLS = []


def send(loss):
    ends = [end.detach() for end in socket.socketpair()]  # leak
    return len(ends) + loss


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        pool = ThreadPoolExecutor(max_workers=3)  # threads
        list(pool.map(send, [loss] * 4))
        POOLS.append(pool)
        print(f"epoch {epoch}: {loss:.3f}")


main()
