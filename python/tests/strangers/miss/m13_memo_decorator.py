# a decorator of the project's own memorises results in a dict on the object, with keys that never come back
from functools import wraps

import torch


def memo(store, prefix):
    def deco(fn):
        @wraps(fn)
        def inner(self, *args):
            d = getattr(self, store)
            key = prefix + "-".join(str(a) for a in args)
            if key not in d:
                d[key] = fn(self, *args)  # diagnostic: [unbounded-cache]
            return d[key]

        return inner

    return deco


class Net:
    def __init__(self, ids):
        self.ids = ids
        self._memo = {}

    @memo("_memo", "pairs")
    def pairs(self, kind, order=None):
        return torch.stack([self.ids, self.ids])


def main(model, loader, opt, net):
    for epoch in range(100):
        for x, y in loader:
            loss = (model(x) * net.pairs(x.sum().item()).float()).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
