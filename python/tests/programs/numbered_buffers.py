"""A module registers a buffer under a new name in each forward pass."""

import torch
from small import EPOCHS, network, train_epoch


class Recording(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.calls = 0

    def forward(self, images):
        outputs = self.inner(images)
        self.register_buffer(f"seen_{self.calls}", outputs.detach().repeat(64, 32))  # leak
        self.calls += 1
        return outputs


def main():
    model = Recording(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        print(f"epoch {epoch}: {loss:.3f}")


main()
