# one of two callers passes a value of unknown kind; without that call the history is reported
from collections import defaultdict

import torch
from torch import nn


class Book:
    def __init__(self):
        self.rows = defaultdict(list)

    def note(self, key, value, t):
        self.rows[key].append((t, value))  # diagnostic: [unbounded-history]


class Learner:
    def __init__(self, net, book):
        self.net = net
        self.book = book
        self.opt = torch.optim.Adam(net.parameters())

    def train(self, x, y, t, env):
        loss = (self.net(x) - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), 10)
        self.opt.step()
        self.book.note("norm", norm, t)
        self.book.note("reward", env.reward / 3, t)


def main(net, loader, steps, env):
    book = Book()
    learner = Learner(net, book)
    t = 0
    while t < steps:
        for x, y in loader:
            learner.train(x, y, t, env)
            t += 1
