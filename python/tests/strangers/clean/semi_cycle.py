"""Consistency training: few labelled images, a large unlabelled pool that is walked through endlessly."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pool(Dataset):
    """Unlabelled images; two noisy views of each."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        image = torch.rand(3, 16, 16, generator=g)
        return image + 0.05 * torch.randn(3, 16, 16), image + 0.05 * torch.randn(3, 16, 16)


def endless(loader):
    while True:
        yield from loader


def classifier():
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 96), nn.ReLU(), nn.Linear(96, 5))


def main(epochs=12, steps=12):
    torch.manual_seed(4)
    model = classifier()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    labelled = [(torch.rand(16, 3, 16, 16), torch.randint(0, 5, (16,))) for _ in range(steps)]
    unlabelled = endless(DataLoader(Pool(40_000), batch_size=16, shuffle=True))
    for epoch in range(1, epochs + 1):
        model.train()
        agree = 0.0
        for (images, kinds), (view_a, view_b) in zip(labelled, unlabelled):
            supervised = nn.functional.cross_entropy(model(images), kinds)
            consistency = (model(view_a).softmax(1) - model(view_b).softmax(1)).pow(2).mean()
            opt.zero_grad()
            (supervised + 5 * consistency).backward()
            opt.step()
            agree += consistency.item()
        print(f"epoch {epoch}: loss {supervised.item():.4f}, disagreement {agree / steps:.5f}", flush=True)


if __name__ == "__main__":
    main()
