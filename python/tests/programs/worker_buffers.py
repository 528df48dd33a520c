"""A decoder in C inside a data set: each item gets a buffer that nobody gives back, in the processes that load."""

import ctypes
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS, STEPS, BATCH = 8, 12, 8
BUFFER = 150_000


class Decoded(Dataset):
    def __init__(self):
        self.library = None

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        if self.library is None:
            self.library = ctypes.CDLL(None)
            self.library.malloc.restype = ctypes.c_void_p
        address = self.library.malloc(ctypes.c_size_t(BUFFER))  # leak
        ctypes.memset(address, index % 7, BUFFER)
        values = (ctypes.c_char * 64).from_address(address)
        return torch.tensor(list(values.raw), dtype=torch.float32), index % 3


def main(context):
    torch.manual_seed(0)
    loader = DataLoader(
        Decoded(), batch_size=BATCH, num_workers=2, persistent_workers=True, multiprocessing_context=context
    )
    model = nn.Linear(64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for values, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(values), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
