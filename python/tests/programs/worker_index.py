"""A large index of Python objects, which forked workers copy as they read it: `python worker_index.py 60000`.

With as few rows as are read in the first epochs (`2000`) the copying ends with them.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

EPOCHS, STEPS, BATCH = 9, 10, 32


def row(number):
    return f"image-{number:07d}.jpg", number % 7, [number * 0.5, number * 0.25, number + 0.125]


class Index(Dataset):
    def __init__(self, rows):
        self.rows = [row(number) for number in range(rows)]  # made

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        name, label, box = self.rows[index]
        return torch.tensor([*box, float(len(name))]), label


def main(rows):
    torch.manual_seed(0)
    data = Index(rows)
    sampler = RandomSampler(data, replacement=True, num_samples=STEPS * BATCH)
    options = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler, **options)
    model = nn.Linear(4, 7)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for epoch in range(EPOCHS):
        for boxes, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(boxes), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
