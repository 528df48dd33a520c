"""Batches that fail are listed for the end: each error keeps its frames, and they the batch and its graph."""

import torch
from small import EPOCHS, batches, network, train_epoch

failed = []


def score(model, images):
    features = model(images.repeat(16, 1, 1, 1))
    raise ValueError(f"no box among {len(features)}")


def validate(model):
    for images, _ in batches(4, seed=1):
        try:
            score(model, images)
        except ValueError as error:
            failed.append(error)  # leak


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    validate(model)
    print(f"epoch {epoch}: {loss:.3f} {len(failed)}")
