"""A context variable holds a tuple of all activations, which every forward pass replaces by a longer one."""

import contextvars

import torch
from small import EPOCHS, STEPS, network, train_epoch

TRACE = contextvars.ContextVar("trace", default=())


def traced(value):
    TRACE.set((*TRACE.get(), value))  # leak
    return value


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        total = sum(traced(torch.rand(64, 1024)).mean().item() for _ in range(STEPS))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {total:.3f}")


main()
