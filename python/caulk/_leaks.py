"""Does a block of code leave more alive than it found?"""

from __future__ import annotations

import gc
from types import TracebackType
from typing import Any, NamedTuple

from . import _agent
from ._growlines import Line, lines_that_grow
from ._looking import HeldBy, prepare
from ._memory import format_bytes, used_cuda

#: Containers that are told of.
_MOST_TOLD = 5
#: What one block of Python's own allocator holds, on average over programs (bytes).
_SMALL_BLOCK = 64


class Grown(NamedTuple):
    """A container that grew.

    Attributes
    ----------
    held_by
        What keeps it.
    type_name
        Its type.
    before, after
        Its length.
    bytes
        What its new elements keep alive, estimated from a sample of them.
    lines
        Lines of the program that may have grown it, by its name.
    """

    held_by: HeldBy
    type_name: str
    before: int
    after: int
    bytes: int
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        size = f", about {format_bytes(self.bytes)}" if self.bytes else ""
        text = f"`{self.held_by}` ({self.type_name}) grew from {self.before} to {self.after} elements{size}"
        return "\n    ".join([text, *(f"grown at {line}" for line in self.lines)])


class LeakFound(AssertionError):
    """More was alive after a block than before.

    Attributes
    ----------
    growth
        Bytes in use that the block left behind.
    grown
        Containers that grew in it, those that keep most first.
    """

    def __init__(self, growth: int, grown: list[Grown]) -> None:
        self.growth = growth
        self.grown = grown
        told = [f"  {entry}" for entry in grown[:_MOST_TOLD]]
        if len(grown) > _MOST_TOLD:
            told.append(f"  and {len(grown) - _MOST_TOLD} more")
        if not grown:
            told = ["  no container of the program's grew: a graph that grows in place, or native code, may hold it"]
        super().__init__("\n".join([f"{format_bytes(growth)} more are in use than before:", *told]))


class leak_check:
    """Fails when a block leaves more memory in use than it found, and names what keeps it.

    Garbage is collected before both readings, so that what is merely waiting for the collector does not count. Run
    the code once beforehand: what is loaded or cached the first time would count.

    Parameters
    ----------
    min_bytes
        Growth of the bytes in use, host and GPU together, from which on it fails.

    Raises
    ------
    LeakFound
        At the end of the block. Not where the block raised an exception of its own.
    RuntimeError
        Where the interpreter offers no safe way to walk its heap.

    Attributes
    ----------
    growth
        Bytes in use that the block left behind, once it has ended; negative where it freed more.

    Examples
    --------
    >>> with leak_check() as check:
    ...     rows = [bytearray(1024) for _ in range(5000)]
    ...     del rows
    >>> check.growth < 1024**2
    True
    """

    growth: int

    def __init__(self, min_bytes: int = 1024**2) -> None:
        self._min_bytes = min_bytes

    def __enter__(self) -> leak_check:
        prepare()
        gc.collect()
        self._lengths: Any = _agent.Lengths()
        self._before = in_use()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            # Its traceback keeps the frames of the block.
            return
        gc.collect()
        self.growth = in_use() - self._before
        if self.growth >= self._min_bytes:
            raise LeakFound(self.growth, grown_since(self._lengths))


def grown_since(lengths: Any) -> list[Grown]:
    """Containers that are longer than when `lengths` was made, those that keep most first."""
    return [
        Grown(
            HeldBy.of(held),
            type_name,
            before,
            after,
            (after - before) * each,
            tuple(lines_that_grow(name)) if name else (),
        )
        for type_name, before, after, each, held, name in lengths.grown()
    ]


def in_use() -> int:
    """Bytes in use: what malloc handed out, an estimate of Python's small objects, GPU memory of tensors."""
    malloc, blocks = _agent.bytes_in_use()
    cuda = used_cuda()
    gpu = sum(cuda.memory_allocated(device) for device in range(cuda.device_count())) if cuda else 0
    return malloc + blocks * _SMALL_BLOCK + gpu
