"""A leak in a program with millions of small objects: what a census may cost is guessed by their number."""

import torch
from small import EPOCHS, batches, network, train_epoch

BALLAST = [float(number) for number in range(2_500_000)]


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for images, _ in batches(4, seed=1):
            kept.append(model(images))  # leak
        print(f"epoch {epoch}: {loss:.3f} {len(kept)} {len(BALLAST)}")


main()
