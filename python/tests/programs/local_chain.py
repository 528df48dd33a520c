"""A local variable is bound anew to a state that refers to the one before it."""

from dataclasses import dataclass
from typing import Any

import torch
from small import EPOCHS, STEPS, network, train_epoch


@dataclass
class State:
    values: torch.Tensor
    previous: Any


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state = State(torch.zeros(64, 1024), None)
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            state = State(state.values * 0.9 + torch.rand(64, 1024), state)  # leak
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {state.values.mean().item():.3f}")


main()
