"""A figure per epoch, saved and closed: its objects hold each other, and its canvas, until the collector comes by."""

import io

import matplotlib.pyplot as plt
import torch

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
losses = []
for _ in range(10):
    for batch in torch.randn(10, 64, 64):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    figure, axes = plt.subplots()
    axes.plot(losses)
    figure.savefig(io.BytesIO())
    plt.close(figure)
