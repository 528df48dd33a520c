"""Keeps memory by small handles, in the way that is asked for, a piece after each epoch."""

import io
import mmap
import sys
from array import array

import torch
from small import EPOCHS, network, train_epoch

PIECE = 4 << 20


def mapping():
    region = mmap.mmap(-1, PIECE)
    region.write(b"x" * PIECE)
    return region


def private():
    region = mmap.mmap(-1, PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.write(b"x" * PIECE)
    return region


def numbers():
    return array("d", bytes(PIECE))


def stream():
    piece = io.BytesIO()
    piece.write(bytes(PIECE))
    return piece


class Store:
    def __init__(self):
        self.pieces = {}

    def keep(self, epoch, piece):
        self.pieces[epoch] = piece  # leak


make = {"mapping": mapping, "private": private, "numbers": numbers, "stream": stream}[sys.argv[1]]
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
store = Store()
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    store.keep(epoch, make())
    print(f"epoch {epoch}: {loss:.3f}")
