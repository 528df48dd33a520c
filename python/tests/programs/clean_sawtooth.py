"""Validation collects large outputs on self and gives them back at its end."""

import torch
from small import EPOCHS, batches, network, train_epoch


class Evaluation:
    def __init__(self, model):
        self.model = model
        self.outputs = []

    def run(self):
        with torch.no_grad():
            for images, _ in batches(12, seed=1):
                self.outputs.append(self.model[0](images.repeat(4, 1, 1, 1)))
        spread = torch.cat(self.outputs).std().item()
        self.outputs.clear()
        return spread


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    evaluation = Evaluation(model)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer)
        print(f"epoch {epoch}: {evaluation.run():.3f}")


main()
