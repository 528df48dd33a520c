"""Class-balanced loss: how often each class was seen so far sets its weight."""

from collections import Counter
import torch
from torch import nn


class Balance:
    def __init__(self, classes):
        self.classes = classes
        self.seen = Counter()

    def observe(self, labels):
        self.seen.update(labels.tolist())

    def weights(self):
        counts = torch.tensor([1.0 + self.seen[c] for c in range(self.classes)])
        return counts.sum() / (self.classes * counts)


def draw(batch):
    kinds = torch.multinomial(torch.tensor([0.55, 0.25, 0.12, 0.08]), batch, replacement=True)
    points = torch.randn(batch, 12)
    points[torch.arange(batch), kinds] += 2.0
    return points, kinds


def main(epochs=12, steps=20):
    torch.manual_seed(17)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    balance = Balance(4)
    for epoch in range(1, epochs + 1):
        for _ in range(steps):
            points, kinds = draw(128)
            balance.observe(kinds)
            loss = nn.functional.cross_entropy(model(points), kinds, weight=balance.weights())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
