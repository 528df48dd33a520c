"""Eighty caches fill up in the first epochs; later a list begins to keep a tensor in each epoch."""

import torch
from small import EPOCHS, network, train_epoch


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    caches, kept = [{} for _ in range(80)], []
    for epoch in range(3 * EPOCHS):
        loss = train_epoch(model, optimizer)
        if epoch < 6:
            for cache in caches:
                cache[f"epoch {epoch}"] = [loss] * 64
        if epoch >= 10:
            kept.append(torch.randn(1000, 1000))  # leak
        print(f"epoch {epoch}: {loss:.3f}")


main()
