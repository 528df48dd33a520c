"""A binding to a C library: every batch gets a work buffer that only C knows, and nobody gives back."""

import ctypes

import torch
from small import EPOCHS, network, train_epoch

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]


class Workspace:
    def __init__(self, samples):
        self.address = library.malloc(samples * 4)  # leak
        ctypes.memset(self.address, 0, samples * 4)


def spectrum(samples):
    workspace = Workspace(samples)
    return workspace.address % 7


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    total = sum(spectrum(500_000) for _ in range(4))
    print(f"epoch {epoch}: {loss:.3f} {total >= 0}")
