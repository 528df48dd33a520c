"""Files are closed and threads end before the epoch does."""

import tempfile
import threading

import torch
from small import EPOCHS, network, train_epoch


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(EPOCHS):
            loss = train_epoch(model, optimizer)
            writers = [
                threading.Thread(target=write, args=(f"{folder}/{epoch}-{part}.log", str(loss)))
                for part in ("loss", "steps", "notes")
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            print(f"epoch {epoch}: {loss:.3f}")


main()
