"""Takes features of made pictures from three depths of a network, shard by shard, and files them with their statistics."""

import argparse
import logging
import queue
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

log = logging.getLogger("features")
SIDE = 48


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)

    def forward(self, x):
        return torch.relu(self.main(x) + self.shortcut(x))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, padding=1)
        self.stages = nn.ModuleList([Block(24, 48), Block(48, 96), Block(96, 192)])

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return x.mean((2, 3))


class Taps:
    """Hooks on the stages of a network: what each gave last, pooled."""

    def __init__(self, model, keep=False):
        self.latest = {}
        self.outputs = defaultdict(list)
        self.keep = keep
        self.handles = [stage.register_forward_hook(self.hook(f"stage{n}")) for n, stage in enumerate(model.stages)]

    def hook(self, name):
        def tap(module, inputs, output):
            pooled = output.amax((2, 3))
            self.latest[name] = pooled
            if self.keep:
                self.outputs[name].append(pooled)  # leak: hook-outputs

        return tap

    def close(self):
        for handle in self.handles:
            handle.remove()


class Uploads(threading.Thread):
    """Sends finished arrays away, in the background."""

    def __init__(self, limit=40):
        super().__init__(daemon=True)
        self.waiting = queue.Queue()
        self.limit = limit
        self.sent = 0

    def send(self, name, array):
        self.waiting.put((name, array))  # leak: uploads

    def run(self):
        while True:
            name, _array = self.waiting.get()
            if self.sent == self.limit:
                log.warning("quota reached at %s, no further uploads", name)
                return
            self.sent += 1


class Pictures:
    """Shards of made pictures; a few of them are damaged."""

    def __init__(self, batches, batch=32):
        self.batches, self.batch = batches, batch
        self.random = np.random.default_rng(3)

    def shard(self):
        for number in range(self.batches):
            raw = self.random.integers(0, 256, (self.batch, 3, SIDE, SIDE), dtype=np.uint8)
            yield raw, number % 6 == 5


def decode(raw, damaged):
    pictures = torch.from_numpy(raw).float().div_(255)
    if damaged:
        pictures[0, 0, 0, 0] = float("nan")
    finite = torch.isfinite(pictures).all()
    if not finite:
        raise ValueError(f"a picture of {tuple(pictures.shape)} is damaged")
    return (pictures - 0.45) / 0.25


class Extraction:
    def __init__(self, leak, folder):
        self.leak, self.folder = leak, folder
        self.model = Backbone().eval()
        self.taps = Taps(self.model, keep=leak == "hook-outputs")
        self.failures = []
        self.damaged = 0
        self.uploads = Uploads()
        self.uploads.start()

    @torch.no_grad()
    def features(self, raw, damaged):
        pictures = decode(raw, damaged)
        final = self.model(pictures)
        return torch.cat([final, *self.taps.latest.values()], dim=1).numpy()

    def shard(self, number, batches):
        total = squares = count = 0
        with open(self.folder / f"shard{number % 4}.bin", "wb") as file:
            for position, (raw, damaged) in enumerate(batches):
                try:
                    features = self.features(raw, damaged)
                except ValueError as error:
                    self.damaged += 1
                    if self.leak == "errors":
                        self.failures.append(error)  # leak: errors
                    continue
                features.tofile(file)
                if self.leak == "uploads":
                    self.uploads.send(f"{number}/{position}", features)
                total, squares = total + features.sum(0), squares + (features**2).sum(0)
                count += len(features)
        mean = total / count
        return {"pictures": count, "mean": mean.mean(), "spread": np.sqrt(squares / count - mean**2).mean()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=16, help="shards")
    parser.add_argument("--size", type=int, default=36, help="batches of a shard")
    parser.add_argument("--leak", choices=["hook-outputs", "uploads", "errors"])
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pictures = Pictures(options.size)
    with tempfile.TemporaryDirectory() as folder:
        extraction = Extraction(options.leak, Path(folder))
        for number in range(1, options.epochs + 1):
            start = time.perf_counter()
            seen = extraction.shard(number, pictures.shard())
            figures = ", ".join(f"{name} {value:.4g}" for name, value in seen.items())
            damaged, seconds = extraction.damaged, time.perf_counter() - start
            print(f"shard {number}: {figures}, damaged {damaged}, {seconds:.1f} s", flush=True)
        extraction.taps.close()


if __name__ == "__main__":
    main()
