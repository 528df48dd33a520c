"""Outputs of validation steps, collected on the module for the end of the epoch and never cleared."""

import torch
from small import EPOCHS, batches, network, train_epoch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = network()
        self.validation_step_outputs = []

    def forward(self, images):
        return self.net(images)

    def validation_step(self, batch):
        images, labels = batch
        logits = self(images)
        loss = nn.functional.cross_entropy(logits, labels)
        self.validation_step_outputs.append({"loss": loss, "logits": logits})  # leak

    def on_validation_epoch_end(self):
        return torch.stack([output["loss"].detach() for output in self.validation_step_outputs]).mean()


class Loop:
    def __init__(self, module):
        self.module = module
        self.optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)

    def validate(self):
        self.module.eval()
        for batch in batches(8, seed=1):
            self.module.validation_step(batch)
        return self.module.on_validation_epoch_end()

    def fit(self):
        for epoch in range(EPOCHS):
            train_epoch(self.module, self.optimizer)
            print(f"epoch {epoch}: {self.validate():.3f}")


Loop(Classifier()).fit()
