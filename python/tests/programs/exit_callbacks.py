"""What is to be saved at the end of the run is registered in every epoch, with the images."""

import atexit
import functools

import torch
from small import EPOCHS, network, train_epoch


def save(name, images):
    assert images.numel() and name


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        images = torch.rand(1024, 1024)
        atexit.register(functools.partial(save, f"worst-{epoch}", images))  # leak
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


main()
