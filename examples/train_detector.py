"""Train a small one-object detector on drawn shapes.

Memory grows with every epoch. Find out why:

    caulk run -- python examples/train_detector.py
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Grey images with one bright rectangle each, drawn from the index alone."""

    def __init__(self, count, size=64, seed=0):
        self.count, self.size, self.seed = count, size, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        gen = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        image = torch.rand(1, self.size, self.size, generator=gen) * 0.2
        x, y = (torch.rand(2, generator=gen) * 0.6 * self.size).int().tolist()
        width, height = (8 + torch.rand(2, generator=gen) * 0.3 * self.size).int().tolist()
        image[:, y : y + height, x : x + width] += 0.7
        box = torch.tensor([x, y, x + width, y + height], dtype=torch.float32)
        return image, box / self.size


def box_iou(predicted, target):
    """Mean intersection over union of boxes (x0, y0, x1, y1)."""
    corner = torch.maximum(predicted[:, :2], target[:, :2])
    opposite = torch.minimum(predicted[:, 2:], target[:, 2:])
    overlap = (opposite - corner).clamp(min=0).prod(dim=1)
    area = (predicted[:, 2:] - predicted[:, :2]).prod(dim=1) + (target[:, 2:] - target[:, :2]).prod(dim=1)
    return (overlap / (area - overlap).clamp(min=1e-6)).mean()


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [1, 16, 24, 32]
        self.stages = nn.Sequential(
            *[
                nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1), nn.BatchNorm2d(o), nn.SiLU())
                for i, o in zip(widths, widths[1:], strict=False)
            ]
        )
        self.box = nn.Linear(widths[-1] * 16, 4)

    def forward(self, images):
        features = nn.functional.adaptive_avg_pool2d(self.stages(images), 4).flatten(1)
        corner, extent = self.box(features).sigmoid().chunk(2, dim=1)
        return torch.cat([corner, corner + extent], dim=1)


class Trainer:
    def __init__(self, steps, batch_size):
        self.train_batches = DataLoader(Shapes(steps * batch_size), batch_size=batch_size, shuffle=True)
        self.val_batches = DataLoader(Shapes(4 * batch_size, seed=1), batch_size=batch_size)
        self.model = Detector()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-3)
        self.val_ious = []

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for images, boxes in self.train_batches:
            self.optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(self.model(images), boxes)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_batches)

    def validate(self):
        self.model.eval()
        for images, boxes in self.val_batches:
            iou = box_iou(self.model(images), boxes)
            self.val_ious.append(iou)
        latest = self.val_ious[-len(self.val_batches) :]
        return torch.stack(latest).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=48, help="training batches per epoch")
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    torch.set_num_threads(1)  # faster for a model this small
    torch.manual_seed(0)
    trainer = Trainer(args.steps, args.batch_size)
    for epoch in range(1, args.epochs + 1):
        loss = trainer.train_epoch()
        print(f"epoch {epoch}: loss {loss:.4f}, IoU {trainer.validate():.3f}", flush=True)


if __name__ == "__main__":
    main()
