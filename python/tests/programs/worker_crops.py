"""A data set that keeps every crop it makes, in the processes that read it: `python worker_crops.py fork persistent`."""

import multiprocessing
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS, STEPS, BATCH = 8, 12, 8


class Crops(Dataset):
    def __init__(self):
        self.images = torch.randn(16, 3, 96, 96)
        self.crops = {}

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        x, y = torch.randint(0, 32, (2,)).tolist()
        crop = self.images[index % 16, :, y : y + 64, x : x + 64].clone()
        self.crops[torch.rand(1).item()] = crop  # leak
        return crop, index % 3


def main(context, persistent):
    torch.manual_seed(0)
    # Torch is imported once, not by every worker of every epoch.
    multiprocessing.set_forkserver_preload(["torch"])
    loader = DataLoader(
        Crops(), batch_size=BATCH, num_workers=2, persistent_workers=persistent, multiprocessing_context=context
    )
    model = nn.Sequential(nn.Conv2d(3, 4, 5, stride=4), nn.Flatten(), nn.LazyLinear(3))
    model(torch.randn(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "persistent")
