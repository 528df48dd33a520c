"""Trains a small transformer on drawn sequences, which two workers load. Its memory does not grow."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Walks(Dataset):
    """Random walks, drawn from the index alone; what is to be told is where they end."""

    def __init__(self, count: int, length: int, seed: int) -> None:
        self.count, self.length, self.seed = count, length, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        gen = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        walk = torch.randn(self.length, 8, generator=gen).cumsum(0)
        return walk[:-1], walk[-1]


class Guesser(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter = nn.Linear(8, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.leave = nn.Linear(width, 8)

    def forward(self, walks: torch.Tensor) -> torch.Tensor:
        return self.leave(self.encoder(self.enter(walks)).mean(1))


def run(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer | None) -> float:
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for walks, ends in loader:
            loss = nn.functional.mse_loss(model(walks), ends)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(0)
    train = DataLoader(Walks(32 * args.steps, 65, seed=1), batch_size=32, shuffle=True, num_workers=2)
    held_out = DataLoader(Walks(32 * 8, 65, seed=2), batch_size=32, num_workers=2)
    model = Guesser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        trained, held = run(model, train, optimizer), run(model, held_out, None)
        print(f"epoch {epoch} train {trained:.3f} held out {held:.3f}")


if __name__ == "__main__":
    main()
