"""Backward passes in backward passes, from two lines in turn, so deep that torch goes on in threads of its own."""

import sys

import torch

EPOCHS, DEPTH = map(int, sys.argv[1:])
kept = []


class First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = (torch.ones(1000, 500) if ctx.depth == 0 else x.detach()).requires_grad_()
            out = inner * 2 if ctx.depth == 0 else First.apply(inner, ctx.depth - 1)
            out.sum().backward()  # first
        if ctx.depth == 0:
            kept.append(inner.grad)
        return grad, None


class Second(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = (torch.ones(1000, 500) if ctx.depth == 0 else x.detach()).requires_grad_()
            out = inner * 2 if ctx.depth == 0 else Second.apply(inner, ctx.depth - 1)
            out.sum().backward()  # second
        if ctx.depth == 0:
            kept.append(inner.grad)
        return grad, None


weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for epoch in range(EPOCHS):
    print("epoch", epoch)
    for function in (First, Second, Second, Second):
        optimizer.zero_grad()
        function.apply(weight, DEPTH).sum().backward()
        optimizer.step()
