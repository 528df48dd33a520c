"""Reinforcement learning that never forgets: the state at the end of a transition is the first of the next."""

from collections import deque

import torch

policy = torch.nn.Linear(2048, 4)
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
memory = deque()


def play(steps):
    state = torch.randn(2048)
    for _ in range(steps):
        action = int(policy(state).argmax())
        following = torch.randn(2048)
        memory.append((state, action, 1.0, following))  # leak
        state = following
        loss = policy(state).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for _episode in range(10):
    play(100)
