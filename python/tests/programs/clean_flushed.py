"""A list of tensors that is written out and emptied every third epoch: memory falls as often, to where it was."""

import torch
from torch import nn

EPOCHS, STEPS = 12, 20


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pending = []
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            inputs, labels = torch.randn(512, 256), torch.randint(0, 10, (512,))
            for _ in range(3):
                train_step(model, optimizer, inputs, labels)
            pending.append(inputs.clone())
        if epoch % 3 == 2:
            pending.clear()
        print(f"epoch {epoch}")


main()
