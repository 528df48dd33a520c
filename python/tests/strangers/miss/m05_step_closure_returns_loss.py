# optimizer.step(closure) returns the loss of the closure with its graph; caulk takes it for a number
import torch
from torch import nn


def fit(model, loader, epochs):
    opt = torch.optim.LBFGS(model.parameters())
    ce = nn.CrossEntropyLoss()
    history = []
    total = 0.0
    for epoch in range(epochs):
        for x, y in loader:

            def closure():
                opt.zero_grad()
                loss = ce(model(x), y)
                loss.backward(retain_graph=True)
                return loss

            loss = opt.step(closure)
            history.append(loss)  # diagnostic: [graph-kept-in-container]
            total += loss  # diagnostic: [loss-kept-with-graph]
    return history, total
