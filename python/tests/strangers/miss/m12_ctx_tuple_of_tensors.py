# the output in a tuple, list or dict on ctx; `ctx.keep = out` is reported
import torch


class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph, x):
        out = x.new_empty(3)
        pass
        ctx.keep = (graph, x.shape, out)  # diagnostic: [context-attribute-tensor]
        return out

    @staticmethod
    def backward(ctx, g):
        return None, g
