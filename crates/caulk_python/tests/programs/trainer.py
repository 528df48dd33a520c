#!/usr/bin/env python3
"""A trainer with one of everything."""
import functools
import queue
from collections import defaultdict

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

MAX_RECORDS = 100
RECORDS = []
_CACHE = {}


def lookup(side, scale):
    key = (side, round(scale, 3))
    if key not in _CACHE:
        _CACHE[key] = torch.full((side,), scale)
    return _CACHE[key]


def put(store, value):
    store.append(value)


class Meter:
    def __init__(self, window=50):
        self.values = []
        self.window = window
        self.total = 0.0

    def update(self, value, n=1):
        self.values.append(value * n)
        self.total += value

    def mean(self):
        return sum(self.values) / max(len(self.values), 1)


class Trainer:
    def __init__(self, model, loader, grad_window=20):
        self.model, self.loader = model, loader
        self.history = {"train": [], "val": []}
        self.queue = queue.Queue()
        self.grad_window = grad_window
        self.grad_norms = []
        self.buckets = defaultdict(list)
        self.meter = Meter()
        self.failures, self.handles = [], []
        self.hidden = None
        self.optimizer = torch.optim.Adam(model.parameters())

    @functools.lru_cache(maxsize=None)
    def angles(self, x):
        return x.atan()

    def step(self, batch, epoch):
        output, hidden = self.model(batch, self.hidden)
        loss = F.mse_loss(output, batch)
        loss.backward(create_graph=True)
        self.optimizer.step()
        for p in self.model.parameters():
            p.grad.zero_()
        self.hidden = hidden
        self.grad_norms.append(float(loss))
        self.meter.update(loss)
        self.buckets[epoch].append({"epoch": epoch, "loss": loss, "name": f"step {epoch}"})
        return loss

    def validate(self, epoch):
        rows = []
        add = rows.append
        for i, batch in enumerate(self.loader):
            try:
                out, _ = self.model(batch, None)
                iou = (out > 0).float().mean() - out.mean() if i else out.mean()
                self.history["val"].append((epoch, iou))
                put(RECORDS, out[0])
                add(iou)
                self.queue.put((epoch, out))
            except RuntimeError as exc:
                self.failures.append((i, exc))
        return torch.stack(rows).mean()

    def watch(self):
        for layer in self.model.children():
            self.handles.append(layer.register_forward_hook(lambda m, i, o: RECORDS.append(o)))

    def plot(self, epoch):
        plt.figure()
        plt.plot(self.grad_norms)
        plt.savefig(f"epoch{epoch}.png")
        fig, ax = plt.subplots()
        ax.plot([float(v) for v in self.meter.values])
        fig.savefig("values.png")

    def fit(self, epochs):
        self.watch()
        total = 0
        for epoch in range(epochs):
            for batch in self.loader:
                total += self.step(batch, epoch)
            self.validate(epoch)
            self.plot(epoch)
        return total
