"""What `caulk selftest` runs: a tiny training, `program.py leak`, and its clean twin, `program.py clean`.

With torch where it is installed, whose hooks then find the epochs; else the program says them itself.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

EPOCHS = 8
LEAKS = sys.argv[1:] == ["leak"]


def train_with_torch() -> None:
    """A graph kept per epoch, about 2 MB each."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history = []
    for _ in range(EPOCHS):
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(1024, 64)).square().mean().backward()
            optimizer.step()
        outputs = model(torch.randn(1024, 64))
        history.append(outputs if LEAKS else outputs.mean().item())  # leak


def train_without_torch() -> None:
    """A buffer of 2 MB kept per epoch."""
    import caulk

    history = []
    for _ in range(EPOCHS):
        for _ in range(8):
            batch = [bytearray(1024) for _ in range(1024)]
        history.append(bytearray(2 << 20) if LEAKS else len(batch))  # leak
        caulk.epoch()


if find_spec("torch"):
    train_with_torch()
else:
    train_without_torch()
