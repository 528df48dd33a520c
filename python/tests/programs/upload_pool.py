"""Work is handed to a pool of one thread faster than it does it."""

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from small import EPOCHS, network, train_epoch


def upload(picture):
    time.sleep(2)
    return picture.sum().item()


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    pool = ThreadPoolExecutor(max_workers=1)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for _ in range(4):
            pool.submit(upload, torch.rand(500_000))  # leak
        print(f"epoch {epoch}: {loss:.3f}", flush=True)
    pool.shutdown(wait=False, cancel_futures=True)


main()
