"""A block of code after which memory is released, and decorators for the same."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ._memory import MemoryUsage, Released, aggressive_gc, get_memory_usage

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("caulk")


class memory_managed_context:
    """Releases memory when a block ends, however it ends, and says how much came back.

    Parameters
    ----------
    label
        Name of the block in the log.
    cuda
        Empty torch's GPU cache too.
    log
        Log one line at the end, at level ``INFO`` of the logger ``caulk``.

    Attributes
    ----------
    before
        Memory when the block began.
    after
        Memory when it had ended and everything was released.
    released
        What the release itself gave back.

    Examples
    --------
    >>> with memory_managed_context("validation") as memory:
    ...     rows = [bytearray(1024) for _ in range(1000)]
    ...     del rows
    >>> memory.after.rss > 0
    True
    """

    before: MemoryUsage
    after: MemoryUsage
    released: Released

    def __init__(self, label: str = "", *, cuda: bool = True, log: bool = True) -> None:
        self._label = label
        self._cuda = cuda
        self._log = log

    def __enter__(self) -> memory_managed_context:
        self.before = get_memory_usage()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released = aggressive_gc(cuda=self._cuda)
        self.after = get_memory_usage()
        if self._log:
            _log.info("%s: %s; now %s", self._label or "block", self.released, self.after)


def release_after(function: Callable[P, R]) -> Callable[P, R]:
    """Releases memory whenever a function has returned or raised.

    Meant for what runs once per epoch, such as a validation: a collection takes 0.1 to 1 s in a large program.

    Examples
    --------
    >>> @release_after
    ... def validate(): return 0.5
    >>> validate()
    0.5
    """

    @functools.wraps(function)
    def released(*args: P.args, **kwargs: P.kwargs) -> R:
        with memory_managed_context(function.__qualname__):
            return function(*args, **kwargs)

    return released


def no_grad_guard(function: Callable[P, R]) -> Callable[P, R]:
    """Runs a function without recording an autograd graph, and refuses to let one out.

    What the function returns may hold tensors of the program's with a graph (an argument handed back), but none whose
    graph was made inside. Without torch in the program it changes nothing.

    Raises
    ------
    RuntimeError
        When a tensor with a graph of its own comes out, because gradients were switched on again inside.

    Examples
    --------
    >>> @no_grad_guard
    ... def evaluate(model, batch): return model(batch)
    >>> evaluate(abs, -2)
    2
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        import sys

        torch = sys.modules.get("torch")
        if torch is None:
            return function(*args, **kwargs)
        from ._trees import tensors_in

        known = {id(tensor) for tensor in tensors_in((args, kwargs))}
        with torch.no_grad():
            result = function(*args, **kwargs)
        for tensor in tensors_in(result):
            if tensor.grad_fn is not None and id(tensor) not in known:
                raise RuntimeError(
                    f"{function.__qualname__} returned a tensor with an autograd graph although it is not to record "
                    "one; something inside switches gradients on again (`torch.enable_grad`, `requires_grad_`)"
                )
        return result

    return guarded
