"""Trains a small image model of timm on made shapes: mixup, an average of the weights, a cosine schedule."""

import argparse
import tempfile
import time
from collections import deque
from pathlib import Path

import matplotlib
import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, Dataset

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SIDE, CLASSES = 64, 6


class Shapes(Dataset):
    """Discs, rings, bars and crosses, drawn by formula when they are asked for."""

    def __init__(self, count, seed):
        random = np.random.default_rng(seed)
        self.kinds = random.integers(0, CLASSES, count)
        self.centres = random.uniform(22, 42, (count, 2)).astype(np.float32)
        self.sizes = random.uniform(8, 18, count).astype(np.float32)
        self.colours = random.uniform(0.4, 1.0, (count, 3, 1, 1)).astype(np.float32)
        self.seed = seed

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32) - self.centres[index][:, None, None]
        size, distance = self.sizes[index], np.hypot(y, x)
        masks = [
            lambda: distance < size,
            lambda: np.abs(distance - size) < 2,
            lambda: (np.abs(y) < 3) & (np.abs(x) < size),
            lambda: (np.abs(x) < 3) & (np.abs(y) < size),
            lambda: (np.minimum(np.abs(x), np.abs(y)) < 2) & (distance < size),
            lambda: np.maximum(np.abs(x), np.abs(y)) < size * 0.8,
        ]
        kind = int(self.kinds[index])
        noise = np.random.default_rng((self.seed, index)).normal(0, 0.1, (3, SIDE, SIDE)).astype(np.float32)
        return torch.from_numpy(masks[kind]()[None] * self.colours[index] + noise), kind


class MedianMeter(AverageMeter):
    """An average that also knows the median of what it has seen."""

    def __init__(self, exact=False):
        super().__init__()
        self.exact = exact
        self.values = []
        self.recent = deque(maxlen=200)

    def update(self, val, n=1):
        if self.exact:
            self.values.append(val)  # leak: exact-median
        self.recent.append(val.item())
        super().update(val.item(), n)

    def median(self):
        return float(np.median(self.recent))


class CallTracer(TorchFunctionMode):
    """Which functions of torch a block of code calls, and on what shapes."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        shapes = [tuple(value.shape) for value in args if isinstance(value, torch.Tensor)]
        self.calls.append((getattr(function, "__name__", str(function)), shapes))  # leak: traced-calls
        return result


class Run:
    def __init__(self, options, folder):
        self.leak, self.folder = options.leak, folder
        self.model = timm.create_model("mobilenetv3_small_050", num_classes=CLASSES, drop_rate=0.1)
        self.ema = ModelEmaV3(self.model, decay=0.98)
        self.optimizer = create_optimizer_v2(self.model, opt="adamw", lr=2e-3, weight_decay=0.02)
        self.schedule = CosineLRScheduler(self.optimizer, t_initial=options.epochs, lr_min=1e-5)
        self.mixup = Mixup(mixup_alpha=0.2, num_classes=CLASSES, label_smoothing=0.05)
        self.loss = SoftTargetCrossEntropy()
        self.losses = MedianMeter(exact=options.leak == "exact-median")
        self.tracer = CallTracer()
        self.train = DataLoader(Shapes(options.size, 1), batch_size=16, shuffle=True, drop_last=True)
        self.held_out = DataLoader(Shapes(options.size // 4, 2), batch_size=32)

    def epoch(self, number):
        self.model.train()
        self.losses.reset()
        for images, kinds in self.train:
            images, targets = self.mixup(images, kinds)
            loss = self.loss(self.model(images), targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.ema.update(self.model)
            self.losses.update(loss, len(kinds))
        self.schedule.step(number)
        return self.losses.avg, self.losses.median()

    @torch.no_grad()
    def validate(self):
        top = AverageMeter()
        confusion = np.zeros((CLASSES, CLASSES), int)
        for images, kinds in self.held_out:
            if self.leak == "traced-calls":
                with self.tracer:
                    logits = self.ema.module(images)
            else:
                logits = self.ema.module(images)
            top.update(accuracy(logits, kinds)[0].item(), len(kinds))
            np.add.at(confusion, (kinds.numpy(), logits.argmax(1).numpy()), 1)
        return top.avg, confusion

    def draw(self, number, confusion):
        figure, axes = plt.subplots(figsize=(6, 5))  # leak: figures
        axes.imshow(confusion)
        axes.set_title(f"epoch {number}")
        figure.savefig(self.folder / "confusion.png", dpi=80)

    def save(self, number, top, confusion):
        torch.save({"epoch": number, "top": top, "model": self.model.state_dict()}, self.folder / "last.pt")
        if self.leak == "figures":
            self.draw(number, confusion)
        else:
            np.savetxt(self.folder / "confusion.txt", confusion, fmt="%d")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--size", type=int, default=480, help="images of an epoch")
    parser.add_argument("--leak", choices=["exact-median", "traced-calls", "figures"])
    options = parser.parse_args()
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(options, Path(folder))
        for number in range(1, options.epochs + 1):
            start = time.perf_counter()
            mean, median = run.epoch(number)
            top, confusion = run.validate()
            run.save(number, top, confusion)
            seconds = time.perf_counter() - start
            print(f"epoch {number}: loss {mean:.3f} ({median:.3f}), top-1 {top:.1f}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
