"""Maps memory in native code after each epoch, and keeps no more than its address."""

import ctypes

import torch
from small import EPOCHS, network, train_epoch

PIECE = 4 << 20
READ_WRITE, PRIVATE_ANONYMOUS = 0x3, 0x22

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


def scratch():
    address = libc.mmap(None, PIECE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)  # leak
    ctypes.memset(address, 1, PIECE)
    return address


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    address = scratch()
    print(f"epoch {epoch}: {loss:.3f}")
