"""A replay buffer and a list that is cut once it is long enough, both far from full when the run ends."""

from collections import deque

import torch

EPOCHS, STEPS = 12, 40


class Memory:
    def __init__(self, room=6000, recent=4000):
        self.replay = deque(maxlen=room)
        self.recent = []
        self.most = recent

    def push(self, value):
        self.replay.append(value.detach().clone())
        self.recent.append(value[:, :64].detach().clone())
        if len(self.recent) > self.most:
            self.recent.pop(0)


def main():
    model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    memory = Memory()
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            out = model(torch.randn(128, 128))
            loss = out.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            memory.push(out)
        print(f"epoch {epoch}: {loss.item():.3f}, {len(memory.replay)} kept")


main()
