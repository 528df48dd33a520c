"""One trial per epoch, with a logger that refers to it: old by the time it is dropped, so that the collector does not come
by."""

import gc

import torch
from small import EPOCHS, network, train_epoch


class Logger:
    def __init__(self, trial):
        self.trial = trial
        self.losses = []


class Trial:
    def __init__(self):
        self.model = network()
        self.features = torch.zeros(2_000_000)
        self.logger = Logger(self)  # leak

    def run(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        # What the allocations of a longer epoch bring about, at moments of their own: the trial grows old.
        gc.collect(1)
        self.logger.losses.append(train_epoch(self.model, optimizer))
        return self.logger.losses[-1]


def main():
    for epoch in range(EPOCHS):
        trial = Trial()
        print(f"epoch {epoch}: {trial.run():.3f}")


main()
