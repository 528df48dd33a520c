"""What CUDA does differently from the CPU, for a model that `_plan.py` runs on tensors without contents.

`_plan.py` loads it from its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: Functions that CUDA's autocast runs in 32 bit and the CPU's does not: `aten/src/ATen/autocast_mode.h`,
#: `AT_FORALL_FP32` beside the list in `autocast_mode.cpp` for the CPU.
FULL_WIDTH = frozenset(
    "layer_norm group_norm softmax log_softmax logsumexp cumsum cumprod prod norm exp log pow sum softplus kl_div "
    "l1_loss smooth_l1_loss huber_loss mse_loss nll_loss cross_entropy cosine_similarity binary_cross_entropy_with_logits".split()
)


class FullWidth(TorchFunctionMode):
    """Casts what those functions read, as CUDA's autocast does."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in FULL_WIDTH and torch.is_autocast_enabled("cpu"):
            narrow = (torch.bfloat16, torch.float16)

            def cast(each: Any) -> Any:
                return each.float() if isinstance(each, torch.Tensor) and each.dtype in narrow else each

            args = tuple(cast(each) for each in args)
            kwargs = {name: cast(each) for name, each in kwargs.items()}
            with torch.autocast("cpu", enabled=False):
                return func(*args, **kwargs)
        return func(*args, **kwargs)


def workspaces_of(func: Any, args: Any, result: Any) -> list[int]:
    """Bytes that cuDNN takes for a convolution, one after the other.

    Its kernels for tensor cores read and write channels last; tensors that are not are copied for them. The backward pass
    does so for the gradient of the input and for that of the weights.
    """
    name = func._schema.name
    if name == "aten::convolution":
        return [copies(args[0], args[1], result)]
    if name == "aten::convolution_backward":
        gradient, images, weights = args[:3]
        return [copies(gradient, weights, images), copies(images, gradient, weights)]
    return []


def copies(*tensors: Any) -> int:
    return sum(each.nbytes for each in tensors if each.dim() > 3 and not channels_last(each))


def channels_last(tensor: Any) -> bool:
    layout = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    return bool(tensor.is_contiguous(memory_format=layout))


#: By function of torch: numbers per step and feature that cuDNN keeps in its reserve space for each layer, and gates.
#: The first were derived from sizes that cuDNN gave for four layers (pytorch/pytorch issue 2895: 736 MB for an LSTM and 864 MB
#: for a GRU, which are 23 and 27 of the tensor between two layers); outputs between layers are kept beside them.
RECURRENT = {"lstm": (5, 4), "gru": (6, 3), "rnn_tanh": (1, 1), "rnn_relu": (1, 1)}


class Recurrent(torch.autograd.Function):
    """The tensors of `cudnnRNNForward` and its backward pass, without what they compute."""

    @staticmethod
    def forward(ctx: Any, kind: str, layers: int, directions: int, steps: Any, state: Any, *weights: Any) -> Any:
        kept, gates = RECURRENT[kind]
        hidden = state.shape[-1]
        between = steps.shape[:-1].numel() * directions * hidden
        output = steps.new_empty((*steps.shape[:-1], directions * hidden))
        last = torch.empty_like(state)
        reserve = steps.new_empty((kept * layers + layers - 1) * between)
        ctx.workspace = gates * layers * between
        # Gates of all layers are computed in it.
        steps.new_empty(ctx.workspace)
        ctx.save_for_backward(steps, state, output, reserve, *weights)
        return output, last, torch.empty_like(state)

    @staticmethod
    def backward(ctx: Any, gradient: Any, *_: Any) -> Any:
        steps, state, _, _, *weights = ctx.saved_tensors
        gradient = gradient.contiguous()
        inputs, first = torch.empty_like(steps), torch.empty_like(state)
        workspace = steps.new_empty(ctx.workspace)
        # All gradients of weights are parts of one tensor.
        flat = steps.new_empty(sum(each.numel() for each in weights))
        del workspace
        parts = [
            part.view_as(each) for part, each in zip(flat.split([w.numel() for w in weights]), weights, strict=True)
        ]
        return None, None, None, inputs, first, *parts


def recurrent(kind: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `torch.nn.LSTM` and its like call, as CUDA has it."""

    def call(steps: Any, state: Any, *rest: Any) -> Any:
        # The numbers of samples per step.
        packed = isinstance(state, torch.Tensor) and not state.is_floating_point()
        if packed:
            return own(steps, state, *rest)
        weights, _, layers, _, _, bidirectional, batch_first = rest
        first = state[0] if kind == "lstm" else state
        if torch.is_autocast_enabled("cpu"):
            steps, first, *weights = (each.bfloat16() for each in (steps, first, *weights))
        steps = steps.transpose(0, 1).contiguous() if batch_first else steps
        output, last, cell = Recurrent.apply(kind, layers, 1 + bidirectional, steps, first, *weights)
        output = output.transpose(0, 1) if batch_first else output
        return (output, last, cell) if kind == "lstm" else (output, last)

    return call


@contextmanager
def as_on_cuda() -> Iterator[None]:
    """Has recurrent layers and autocast work as on a GPU."""
    functions = torch._VF
    own = {kind: getattr(functions, kind) for kind in RECURRENT}
    for kind, function in own.items():
        setattr(functions, kind, recurrent(kind, function))
    try:
        with FullWidth():
            yield
    finally:
        for kind, function in own.items():
            setattr(functions, kind, function)
