"""A list with slots that C code has not filled, `PyList_New`: it gets a tensor at each step beside them."""

import ctypes

import torch
from small import EPOCHS, batches, network, train_epoch

make = ctypes.pythonapi.PyList_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_ssize_t]


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = make(6)
    for epoch in range(EPOCHS):
        for images, _ in batches(12):
            rows.append(torch.cat([images] * 8))  # leak
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


main()
