"""What the test programs share: a small network and batches from a seed."""

import torch
from torch import nn

EPOCHS = 8
STEPS = 24


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 24 * 24, 4))


def batches(count, seed=0):
    """`count` pairs of images and labels; a seed gives the same ones every time."""
    gen = torch.Generator().manual_seed(seed)
    for _ in range(count):
        labels = torch.randint(4, (8,), generator=gen)
        yield torch.rand(8, 1, 24, 24, generator=gen) + labels[:, None, None, None] * 0.2, labels


def train_epoch(model, optimizer, steps=STEPS):
    """One epoch without anything kept; the mean loss."""
    model.train()
    total = 0.0
    for images, labels in batches(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps
