"""Copies of the model, gradients and all, for a moving average that only ever reads the last."""

import copy

import torch


class Averaging:
    def __init__(self):
        self.members = []

    def add(self, model):
        self.members.append(copy.deepcopy(model))  # leak


model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
averaging = Averaging()
for _epoch in range(10):
    for _ in range(10):
        x = torch.randn(16, 512)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    averaging.add(model)
