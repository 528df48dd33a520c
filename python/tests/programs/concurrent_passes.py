"""Two backward passes at the same time, each so deep that torch goes on in threads of its own, from a line of each."""

import sys
import threading

import torch

EPOCHS, DEPTH = map(int, sys.argv[1:])
#: Both passes go on from here together, in a thread of torch's each.
both = threading.Barrier(2)
kept = []


def meet(gradient):
    both.wait()


def innermost(rows):
    inner = torch.ones(rows, 500, requires_grad=True)
    out = inner * 2
    out.register_hook(meet)
    return inner, out


class First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            inner = torch.ones(1, requires_grad=True)
            inner, out = innermost(1000) if ctx.depth == 0 else (inner, First.apply(inner, ctx.depth - 1))
            out.sum().backward()  # first
        if ctx.depth == 0:
            kept.append(inner.grad)
        return grad, None


class Second(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            inner = torch.ones(1, requires_grad=True)
            inner, out = innermost(3000) if ctx.depth == 0 else (inner, Second.apply(inner, ctx.depth - 1))
            out.sum().backward()  # second
        if ctx.depth == 0:
            kept.append(inner.grad)
        return grad, None


def work(function, weight):
    function.apply(weight, DEPTH).sum().backward()


weights = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
optimizer = torch.optim.SGD(weights, lr=0.1)
for epoch in range(EPOCHS):
    print("epoch", epoch)
    for _ in range(4):
        optimizer.zero_grad()
        threads = [threading.Thread(target=work, args=each) for each in zip((First, Second), weights, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        optimizer.step()
