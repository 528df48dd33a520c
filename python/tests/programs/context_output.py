"""An output kept as an attribute of `ctx` holds the graph that holds it, and the collector is switched off."""

import gc

import torch
from small import EPOCHS, network, train_epoch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x * 2.0
        ctx.out = out  # leak
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0 + 0.0 * ctx.out


gc.disable()
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    for _ in range(8):
        Scaled.apply(torch.ones(64, 1024, requires_grad=True)).sum().backward()
    print(f"epoch {epoch}: {loss:.3f}")
