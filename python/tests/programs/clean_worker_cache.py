"""Workers that keep what they decode, one entry for each image: full after the first epochs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

EPOCHS, STEPS, BATCH = 9, 12, 8


class Decoded(Dataset):
    def __init__(self):
        self.decoded = {}

    def __len__(self):
        return 32

    def __getitem__(self, index):
        if index not in self.decoded:
            self.decoded[index] = torch.randn(3, 64, 64)
        return self.decoded[index].mean(), index % 3


def main():
    torch.manual_seed(0)
    data = Decoded()
    sampler = RandomSampler(data, replacement=True, num_samples=STEPS * BATCH)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler, num_workers=2, persistent_workers=True)
    model = nn.Linear(1, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for means, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(means[:, None]), labels).backward()
            optimizer.step()
        print(f"epoch {epoch}")


if __name__ == "__main__":
    main()
