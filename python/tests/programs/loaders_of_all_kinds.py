"""Loaders of every kind, and what became of their settings: for `caulk run --apply`."""

import json
import sys

import torch
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    WeightedRandomSampler,
)


class Stream(IterableDataset):
    """Rows without an end that is known."""

    def __iter__(self):
        return iter(torch.zeros(8, 2))


class OwnLoader(DataLoader):
    """A loader of a library's."""

    def __init__(self, data):
        super().__init__(data, 32, shuffle=True, num_workers=3, prefetch_factor=4, persistent_workers=True)


def settings(loader):
    names = ("batch_size", "num_workers", "prefetch_factor", "pin_memory", "persistent_workers")
    return {name: getattr(loader, name) for name in names}


def main():
    data = TensorDataset(torch.zeros(64, 2))
    loaders = {
        "training": OwnLoader(data),
        "positional": DataLoader(data, 16, True, None, None, 2),
        "validation": DataLoader(data, batch_size=64, num_workers=2, pin_memory=True),
        "small": DataLoader(data, batch_size=2),
        "random": DataLoader(data, batch_size=32, sampler=RandomSampler(data), num_workers=2),
        "in order": DataLoader(data, batch_size=32, sampler=SequentialSampler(data), num_workers=2),
        "sampler": DataLoader(data, batch_size=32, sampler=WeightedRandomSampler([1.0] * 64, 64), num_workers=2),
        "batches": DataLoader(data, batch_sampler=[[0, 1], [2, 3]], num_workers=2),
        "iterable": DataLoader(Stream(), batch_size=32, num_workers=2),
    }
    assert sum(len(rows) for (rows,) in loaders["training"]) == 64
    try:
        DataLoader(data, batch_size=0)
    except ValueError as error:
        print(f"refused: {error}", file=sys.stderr)
    print(json.dumps({name: settings(loader) for name, loader in loaders.items()}))


if __name__ == "__main__":
    main()
