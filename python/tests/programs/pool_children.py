"""A pool that works through a list in every epoch; its children keep what they have seen."""

import multiprocessing

import torch
from torch import nn

EPOCHS, STEPS = 8, 8
SEEN = []


def prepare(seed):
    features = torch.full((64, 256), float(seed % 5))
    SEEN.append(features)  # leak
    return float(features.mean())


def main():
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for epoch in range(EPOCHS):
            means = pool.map(prepare, range(96), chunksize=4)
            for mean in means[:STEPS]:
                optimizer.zero_grad()
                model(torch.tensor([[mean]])).square().sum().backward()
                optimizer.step()
            print(f"epoch {epoch}")


if __name__ == "__main__":
    main()
