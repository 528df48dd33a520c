"""A helper registers hooks of tensors again each epoch, each with a mask of its own; the loop tells how many there are."""

import functools

import torch

EPOCHS, STEPS = 12, 20


def scaled(mask, gradient):
    return gradient * mask


class Masks:
    def __init__(self, model):
        self.model = model

    def renew(self):
        for parameter in self.model.parameters():
            mask = (torch.rand_like(parameter) > 0.01).float()
            parameter.register_hook(functools.partial(scaled, mask))  # leak


def main():
    model = torch.nn.Linear(1000, 400)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    masks = Masks(model)
    for epoch in range(EPOCHS):
        masks.renew()
        for _ in range(STEPS):
            loss = model(torch.randn(64, 1000)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}, {len(model.weight._backward_hooks)} hooks")


main()
