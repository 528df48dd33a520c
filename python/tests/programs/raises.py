"""Ends by an error inside a function that caulk has a hook around."""

import sys
from multiprocessing import SimpleQueue
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise KeyError(index)


def backward():
    loss = torch.ones(2, requires_grad=True).sin().sum()
    loss.backward()
    loss.backward()


def gradient():
    torch.autograd.grad(torch.ones(1).sum(), torch.ones(1))


def batch(workers):
    for _ in DataLoader(Broken(), num_workers=workers):
        pass


def work():
    queue = SimpleQueue()
    queue._reader.close()
    queue.get()


def load():
    Path("transformers").mkdir(exist_ok=True)
    Path("transformers/__init__.py").touch()
    Path("transformers/trainer_callback.py").write_text("def fails():\n    raise OSError('no')\n\n\nfails()\n")
    sys.path.insert(0, ".")
    import transformers.trainer_callback  # noqa: F401


WAYS = {
    "backward": backward,
    "gradient": gradient,
    "batch": lambda: batch(0),
    "batch of a worker": lambda: batch(2),
    "work": work,
    "import": load,
}
WAYS[sys.argv[1]]()
