"""Spectra lie in one file that is mapped; each window is standardised as it is read."""

import os
import tempfile
import numpy as np
import torch
from torch import nn

BANDS, ROWS = 512, 40_000


def write_spectra(path):
    rng = np.random.default_rng(0)
    spectra = np.memmap(path, dtype=np.float32, mode="w+", shape=(ROWS, BANDS))
    for at in range(0, ROWS, 4000):
        spectra[at : at + 4000] = rng.standard_normal((4000, BANDS), dtype=np.float32) * 3 + 1
    spectra.flush()


class Windows:
    def __init__(self, path, mode):
        self.spectra = np.memmap(path, dtype=np.float32, mode=mode, shape=(ROWS, BANDS))
        self.rng = np.random.default_rng(1)

    def draw(self, count):
        start = int(self.rng.integers(0, ROWS - count))
        window = np.array(self.spectra[start : start + count])
        window -= window.mean(1, keepdims=True)
        window /= window.std(1, keepdims=True)
        return torch.from_numpy(np.ascontiguousarray(window))


def main(epochs=12, steps=10, batch=64):
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "spectra.f32")
        write_spectra(path)
        windows = Windows(path, "r")
        model = nn.Sequential(nn.Linear(BANDS, 64), nn.GELU(), nn.Linear(64, BANDS))
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(1, epochs + 1):
            for _ in range(steps):
                x = windows.draw(batch).clone()
                loss = (model(x) - x).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
