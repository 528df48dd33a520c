"""A script without functions: the list of logits, kept for a plot at the end, keeps every graph."""

import torch
from small import EPOCHS, STEPS, batches, network
from torch import nn

model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
peaks = []
for epoch in range(EPOCHS):
    for images, labels in batches(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        peaks.append(model(images).max())  # leak
    print(f"epoch {epoch}: {peaks[-1].item():.3f}")
