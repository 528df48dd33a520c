"""Every epoch hooks each parameter's gradient once more, with a moving average of its own; the optimizer keeps state by parameter."""

import torch
from small import EPOCHS, network, train_epoch


def smooth(parameter):
    average = torch.zeros(256, 1024)

    def follow(gradient):
        average[0, 0] = 0.9 * average[0, 0] + 0.1 * gradient.abs().max()

    parameter.register_hook(follow)  # leak


def main():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for parameter in model.parameters():
            smooth(parameter)
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


main()
