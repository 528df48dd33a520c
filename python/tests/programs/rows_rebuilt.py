"""What an epoch has given is put into a new list with all before it."""

import torch
from small import EPOCHS, batches, network, train_epoch


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    (images, labels), rows = next(batches(1, seed=3)), []
    for epoch in range(EPOCHS + 4):
        loss = train_epoch(model, optimizer)
        with torch.no_grad():
            maps = model[0](images.repeat(32, 1, 1, 1))
        rows = [*rows, {"epoch": epoch, "maps": maps, "labels": labels}]  # leak
        print(f"epoch {epoch}: {loss:.3f}")


main()
