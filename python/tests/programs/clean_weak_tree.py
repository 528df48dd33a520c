"""A search tree whose nodes refer to their parents weakly: each is free with its last use."""

import gc
import weakref

import torch
from small import EPOCHS, network, train_epoch

gc.disable()


class Node:
    def __init__(self, state):
        self.state = state
        self.branches = []
        self.origin = None

    def grow(self, node):
        self.branches.append(node)
        node.origin = weakref.ref(self)


def search(depth):
    node = root = Node(torch.rand(128, 64))
    for _ in range(depth):
        branch = Node(node.state * 0.9)
        node.grow(branch)
        node = branch
    return root.state.mean().item()


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        value = sum(search(10) for _ in range(10))
        print(f"epoch {epoch}: {loss:.3f} {value:.1f}")


main()
