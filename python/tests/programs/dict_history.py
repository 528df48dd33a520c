"""A history of dicts, one list per name; one of the values is a tensor with its graph."""

from collections import defaultdict

import torch
from small import EPOCHS, batches, network, train_epoch


def evaluate(model, history):
    model.eval()
    for images, labels in batches(6, seed=1):
        scores = model(images).softmax(dim=1)
        right = scores.argmax(dim=1).eq(labels).float().mean()
        history["accuracy"].append(right.item())
        history["confidence"].append(scores.max(dim=1).values.mean())  # leak


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history = defaultdict(list)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        evaluate(model, history)
        print(f"epoch {epoch}: {history['accuracy'][-1]:.2f} {history['confidence'][-1].item():.2f}")


if __name__ == "__main__":
    main()
