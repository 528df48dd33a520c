"""Every epoch's log is opened and kept open."""

import tempfile

import torch
from small import EPOCHS, network, train_epoch


class Logs:
    def __init__(self, folder):
        self.folder = folder
        self.files = []

    def write(self, epoch, loss):
        for part in ("loss", "steps", "notes"):
            file = open(f"{self.folder}/{epoch}-{part}.log", "w", buffering=8192)
            file.write(f"{loss}\n")
            self.files.append(file)  # leak


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        logs = Logs(folder)
        for epoch in range(EPOCHS):
            loss = train_epoch(model, optimizer)
            logs.write(epoch, loss)
            print(f"epoch {epoch}: {loss:.3f}")


main()
