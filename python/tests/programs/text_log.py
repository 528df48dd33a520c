"""Long strings in a local dict, which the collector does not track."""

import torch


def main():
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    texts = {}
    for _epoch in range(10):
        for _ in range(20):
            loss = model(torch.randn(64, 256)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            texts[len(texts)] = repr(model.weight[0].tolist()) * 10  # leak
    return texts


main()
