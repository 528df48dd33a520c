"""Uses torch in ways that notice a tool: prints what it computes and what it sees of itself, and ends with a code of its own."""

import copy
import hashlib
import inspect
import io
import pickle
import sys

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


class Calls(TorchFunctionMode):
    """Lists every function of torch that runs inside it."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(getattr(function, "__qualname__", str(function)))
        return function(*args, **(kwargs or {}))


def function_transforms():
    weight = torch.arange(6.0).reshape(2, 3)

    def loss(weight, x):
        return torch.tanh(weight @ x).sum()

    print(torch.func.grad(loss)(weight, torch.ones(3)))
    print(torch.func.vmap(torch.func.grad(loss), (None, 0))(weight, torch.eye(3)).shape)
    print(torch.func.jacrev(loss, argnums=1)(weight, torch.ones(3)), torch.func.hessian(torch.sum)(torch.ones(2)))


def graphs():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    traced = torch.fx.symbolic_trace(model)
    print(traced.code, [node.op for node in traced.graph.nodes])
    x = torch.linspace(0, 1, 4, requires_grad=True)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    first.sum().backward()
    print(first, x.grad, first.grad_fn.name())
    out = checkpoint(lambda value: Cube.apply(value).sum(), x, use_reentrant=False)
    out.backward()
    print(x.grad)


def training():
    model, seen = nn.Linear(3, 1), []
    model.register_full_backward_hook(lambda module, gradient, result: seen.append("module"))
    model.weight.register_hook(lambda gradient: seen.append("weight"))
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.register_step_post_hook(lambda *arguments: seen.append("step"))
    loader = DataLoader(TensorDataset(torch.randn(32, 3)), batch_size=8, shuffle=True)
    calls = Calls()
    for epoch in range(4):
        for (batch,) in loader:
            optimizer.zero_grad()
            with calls:
                model(batch).square().mean().backward()
            optimizer.step()
        print(epoch, [value.item() for value in model.parameters() if value.numel() == 1], torch.initial_seed())
    print(len(seen), seen[:6], len(calls.names), calls.names[:8])
    print(type(iter(loader)).__qualname__, sorted(vars(optimizer)), sorted(vars(model)))
    again = pickle.loads(pickle.dumps(copy.deepcopy(optimizer)))
    saved = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": again.state_dict()}, saved)
    print(hashlib.sha256(saved.getvalue()).hexdigest())


def itself():
    for function in (torch.Tensor.backward, torch.autograd.backward, torch.optim.Adam.step, DataLoader.__iter__):
        print(function.__module__, function.__qualname__, inspect.signature(function))
    print(sys.gettrace(), sys.getprofile(), sys.flags.no_site, sys.argv[1:], sys.orig_argv[2:], sys.path[1:])


def add(rank, shared, queue):
    shared[rank] += rank + 1
    queue.put(rank)


def processes():
    context = torch.multiprocessing.get_context("spawn")
    shared, queue = torch.zeros(2).share_memory_(), context.Queue()
    torch.multiprocessing.spawn(add, (shared, queue), nprocs=2)
    print(shared, sorted(queue.get() for _ in range(2)))
    try:
        torch.multiprocessing.spawn(add, (None, None), nprocs=1)
    except torch.multiprocessing.ProcessRaisedException as error:
        print(error.error_index, str(error).splitlines()[-1])


if __name__ == "__main__":
    torch.manual_seed(0)
    for part in sys.argv[1:]:
        globals()[part]()
    sys.exit(23)
