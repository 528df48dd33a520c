"""Workers that stay as they were, or that each epoch makes anew; what grows is a list of the process they work for."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS, ITEMS, BATCH = 9, 64, 8


class Clips(Dataset):
    def __init__(self):
        self.read = {}

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        # As much after each epoch as after the first.
        self.read[index] = torch.randn(6_000)
        return self.read[index][:64].clone()


class Trainer:
    def __init__(self):
        self.model = nn.Linear(64, 8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.seen = []

    def train(self, loader):
        for clips in loader:
            self.optimizer.zero_grad()
            outputs = self.model(clips)
            outputs.pow(2).mean().backward()
            self.optimizer.step()
            self.seen.append(torch.randn(60_000))  # leak


def main(workers):
    torch.manual_seed(0)
    loader = DataLoader(Clips(), batch_size=BATCH, num_workers=2, persistent_workers=workers == "persistent")
    trainer = Trainer()
    for epoch in range(EPOCHS):
        trainer.train(loader)
        print(f"epoch {epoch}: {len(trainer.seen)}")


if __name__ == "__main__":
    main(sys.argv[1])
