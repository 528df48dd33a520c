"""Kept buffers that threads of a pool allocate for one of two lines in turn: `python pool_buffers.py LIBRARY EPOCHS`."""

import ctypes
import sys

import torch

library = ctypes.CDLL(sys.argv[1])
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for epoch in range(int(sys.argv[2])):
    print("epoch", epoch)
    for turn in range(4):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
        if turn == 0:
            library.keep_in_parallel()  # first
        else:
            library.keep_in_parallel()  # second
