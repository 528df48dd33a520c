"""Cross-validation under accelerate; each epoch line is one fold."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def regressor():
    return nn.Sequential(nn.Linear(40, 320), nn.SiLU(), nn.Linear(320, 320), nn.SiLU(), nn.Linear(320, 1))


def fold_loaders(x, y, fold, folds):
    mask = torch.arange(len(x)) % folds == fold
    train = TensorDataset(x[~mask], y[~mask])
    held = TensorDataset(x[mask], y[mask])
    return DataLoader(train, batch_size=64, shuffle=True), DataLoader(held, batch_size=256)


def run_fold(accelerator, x, y, fold, folds, passes=2):
    torch.manual_seed(fold)
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train, held = fold_loaders(x, y, fold, folds)
    model, optimizer, train, held = accelerator.prepare(model, optimizer, train, held)
    for _ in range(passes):
        for bx, by in train:
            loss = nn.functional.mse_loss(model(bx), by)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
    with torch.no_grad():
        errors = [(model(bx) - by).pow(2).mean().item() for bx, by in held]
    return sum(errors) / len(errors)


def main(folds=12):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(720, 40, generator=g)
    y = x[:, :5].sum(1, keepdim=True).sin()
    accelerator = Accelerator(cpu=True)
    scores = []
    for fold in range(folds):
        scores.append(run_fold(accelerator, x, y, fold, folds))
        accelerator.free_memory()
        print(f"epoch {fold + 1}: held-out error {scores[-1]:.4f}", flush=True)
    print(f"mean {sum(scores) / folds:.4f}")


if __name__ == "__main__":
    main()
