"""A log of raw bytes in a local variable: no object of the collector refers to it."""

import torch


def main():
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    raw = bytearray()
    for _epoch in range(10):
        for _ in range(20):
            x = torch.randn(64, 256)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            raw.extend(x.numpy().tobytes())  # leak
    return raw


main()
