"""A process is sent its settings through a pipe, one by one, and then trains beside the one that has sent them."""

import multiprocessing
import time

import torch
from small import EPOCHS, batches, network, train_epoch


def train_beside(pipe):
    settings = dict(pipe.recv() for _ in range(16))
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["rate 3"])
    losses = []
    for _ in range(EPOCHS):
        for images, labels in batches(24):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images.repeat(8, 1, 1, 1)), labels.repeat(8))
            loss.backward(retain_graph=True)
            optimizer.step()
            losses.append(loss)  # leak
    pipe.send(len(losses))


def main():
    own, others = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=train_beside, args=(others,))
    child.start()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        for number in range(8) if epoch < 2 else ():
            own.send((f"rate {epoch * 8 + number}", 1e-3))
            time.sleep(0.1)
        print(f"epoch {epoch}", flush=True)
    print(own.recv())
    child.join()


main()
