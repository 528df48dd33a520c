"""No optimizer, no backward pass, next to nothing for the collector: outputs are kept with their graphs."""

import time

import torch


class Predictor:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
        self.outputs = []

    def predict(self, batch):
        self.outputs.append(self.model(batch))  # leak


def main():
    predictor, until = Predictor(), time.monotonic() + 14
    while time.monotonic() < until:
        predictor.predict(torch.randn(128, 256))
        time.sleep(0.02)
    print("done")


main()
