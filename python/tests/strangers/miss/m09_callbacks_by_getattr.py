# callbacks are told through getattr(cb, name)(...); `cb.on_batch_end(...)` is reported
import torch
from torch import nn


class Keep:
    def __init__(self):
        self.preds = []

    def on_batch_end(self, net, pred=None, **kw):
        self.preds.append(pred)  # diagnostic: [graph-kept-in-container]

    def on_epoch_end(self, net, **kw):
        print(len(self.preds))


class Net:
    def __init__(self, module, loader, callbacks):
        self.module = module
        self.loader = loader
        self.callbacks = callbacks
        self.opt = torch.optim.SGD(module.parameters(), lr=0.1)

    def notify(self, name, **kw):
        for cb in self.callbacks:
            getattr(cb, name)(self, **kw)

    def fit(self, epochs):
        for epoch in range(epochs):
            for x, y in self.loader:
                self.opt.zero_grad()
                pred = self.module(x)
                loss = nn.functional.mse_loss(pred, y)
                loss.backward()
                self.opt.step()
                self.notify("on_batch_end", pred=pred)
            self.notify("on_epoch_end")


def main(model, loader):
    Net(model, loader, [Keep()]).fit(100)
