"""Work buffers that shrink to a tag: what is freed lies between the tags and cannot be given back. No leak."""

import ctypes

import torch
from small import EPOCHS, network, train_epoch

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.realloc.restype = ctypes.c_void_p
library.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def work(size):
    """So many bytes in each of 200 buffers; of each the first few stay where they are."""
    buffers = [library.malloc(size) for _ in range(200)]
    for buffer in buffers:
        ctypes.memset(buffer, 0, size)
    for buffer in buffers:
        library.realloc(buffer, 24)


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS + 4):
    loss = train_epoch(model, optimizer)
    # Too large for the gaps that the epochs before have left.
    work(50_000 + 4_000 * epoch)
    print(f"epoch {epoch}: {loss:.3f}")
