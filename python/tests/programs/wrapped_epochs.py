"""Every epoch wraps the loss once more, in a function that holds the epoch's buffer."""

import torch
from small import EPOCHS, network, train_epoch


class Trainer:
    def __init__(self):
        self.loss_of = torch.nn.functional.mse_loss

    def anneal(self, sample):
        before = self.loss_of

        def annealed(output, target):
            return before(output, target) + 0.0 * sample.mean()

        self.loss_of = annealed  # leak


def main():
    model, trainer = network(), Trainer()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        trainer.anneal(torch.rand(1024, 1024))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


main()
