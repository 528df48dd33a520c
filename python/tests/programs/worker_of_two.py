"""A training and a validation set, each with a worker that stays; the one for validation keeps what it has read."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS, ITEMS, BATCH = 9, 64, 8


class Clips(Dataset):
    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        return torch.randn(64)


class CachedClips(Clips):
    def __init__(self):
        self.read = []

    def __getitem__(self, index):
        self.read.append(torch.randn(6_000))  # leak
        return self.read[-1][:64].clone()


def main():
    torch.manual_seed(0)
    train = DataLoader(Clips(), batch_size=BATCH, num_workers=1, persistent_workers=True)
    validation = DataLoader(CachedClips(), batch_size=BATCH, num_workers=1, persistent_workers=True)
    model = nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for clips in train:
            optimizer.zero_grad()
            model(clips).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            total = sum(model(clips).mean().item() for clips in validation)
        print(f"epoch {epoch}: {total:.3f}")


if __name__ == "__main__":
    main()
