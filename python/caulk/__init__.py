"""Memory of a training program: seen, bounded, released, checked for leaks.

Importing caulk imports nothing else; each name below is loaded when it is first used, and torch never by caulk.

`epoch`, `step` and `phase` are marks for `caulk run`, where it cannot tell the epochs and steps of a program by itself.
Without `caulk run` they do nothing and cost next to nothing.

```python
import caulk

for epoch in range(epochs):
    caulk.epoch()
    for batch in batches:
        train(batch)
        caulk.step()
    with caulk.phase("validation"):
        validate()
```
"""

# `typing` is not imported: `caulk run` brings this module into programs that may not have it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Saver = TypeVar("Saver", bound=Callable[[], object])

    from ._clearing import clear_caches, clear_tensors
    from ._flat import flat
    from ._growlines import Line
    from ._history import BoundedHistory, OutputCollector, Statistics
    from ._leaks import Grown, LeakFound, leak_check
    from ._looking import Census, HeldBy, Retained, TypeCount, census, find_holders, retained
    from ._managed import memory_managed_context, no_grad_guard, release_after
    from ._memory import MemoryUsage, Released, aggressive_gc, clear_gpu_memory, format_bytes, get_memory_usage
    from ._stats import log_memory_stats
    from ._tracker import MemoryTracker, Reading, TrackerReport
    from ._trees import detach_to_cpu
    from ._watch import PlotAtEnd, Watch, WatchOptions, to_tensorboard, to_wandb

#: Where each name lies.
_HOMES = {
    "_clearing": ("clear_caches", "clear_tensors"),
    "_flat": ("flat",),
    "_growlines": ("Line",),
    "_history": ("BoundedHistory", "OutputCollector", "Statistics"),
    "_leaks": ("Grown", "LeakFound", "leak_check"),
    "_looking": ("Census", "HeldBy", "Retained", "TypeCount", "census", "find_holders", "retained"),
    "_managed": ("memory_managed_context", "no_grad_guard", "release_after"),
    "_memory": (
        "MemoryUsage",
        "Released",
        "aggressive_gc",
        "clear_gpu_memory",
        "format_bytes",
        "get_memory_usage",
    ),
    "_stats": ("log_memory_stats",),
    "_tracker": ("MemoryTracker", "Reading", "TrackerReport"),
    "_trees": ("detach_to_cpu",),
    "_watch": ("PlotAtEnd", "Watch", "WatchOptions", "to_tensorboard", "to_wandb"),
}

__all__ = [
    "BoundedHistory",
    "Census",
    "Grown",
    "HeldBy",
    "LeakFound",
    "Line",
    "MemoryTracker",
    "MemoryUsage",
    "OutputCollector",
    "PlotAtEnd",
    "Reading",
    "Released",
    "Retained",
    "Statistics",
    "TrackerReport",
    "TypeCount",
    "Watch",
    "WatchOptions",
    "aggressive_gc",
    "census",
    "clear_caches",
    "clear_gpu_memory",
    "clear_tensors",
    "detach_to_cpu",
    "epoch",
    "find_holders",
    "flat",
    "format_bytes",
    "get_memory_usage",
    "leak_check",
    "log_memory_stats",
    "memory_managed_context",
    "no_grad_guard",
    "on_checkpoint",
    "phase",
    "release_after",
    "retained",
    "step",
    "to_tensorboard",
    "to_wandb",
]

#: Set by `caulk._bootstrap` under `caulk run`.
_marks: "Any" = None

#: What saves the state of the training, given to `on_checkpoint`.
_savers: "list[Callable[[], object]]" = []

_PHASES = ("train", "validation", "test")


def __getattr__(name: str) -> "Any":
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'caulk' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"caulk.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: "Any") -> None:
    """`%load_ext caulk`: the magics `%caulk` and `%%caulk`."""
    from . import _jupyter

    _jupyter.load(shell)


def epoch() -> None:
    """Says that an epoch begins or ends here. Call it once per epoch, always at the same place.

    Examples
    --------
    >>> for number in range(3):
    ...     epoch()
    """
    if _marks is not None:
        _marks.said_epoch()


def step() -> None:
    """Says that an optimizer step, or what counts as one, is done. Steps that caulk sees itself no longer count then.

    Examples
    --------
    >>> for batch in ("first", "second"):
    ...     step()
    """
    if _marks is not None:
        _marks.said_step()


def on_checkpoint(save: "Saver") -> "Saver":
    """Registers a function that saves the state of the training, for when `caulk run --guard` asks for a checkpoint.

    It is called on the main thread between two steps: where the program calls `caulk.step()` or `caulk.epoch()`, else
    before the next batch is fetched, else right after the next `optimizer.step()`. What it returns, if anything, is the
    path of the checkpoint. Without the guard it is never called.

    Examples
    --------
    >>> @on_checkpoint
    ... def save():
    ...     return "run/last.pt"
    """
    _savers.append(save)
    return save


class phase:
    """Says what the program does inside: `train`, `validation` or `test`.

    Raises
    ------
    ValueError
        For another name.

    Examples
    --------
    >>> with phase("validation"):
    ...     score = 0.5
    """

    __slots__ = ("_name", "_outer")

    def __init__(self, name: str) -> None:
        if name not in _PHASES:
            raise ValueError(f"phase is one of {', '.join(_PHASES)}, not {name!r}")
        self._name = name
        self._outer: Any = None

    def __enter__(self) -> "phase":
        if _marks is not None:
            self._outer = _marks.enter_phase(_PHASES.index(self._name) + 1)
        return self

    def __exit__(self, *_: object) -> None:
        if _marks is not None and self._outer is not None:
            _marks.leave_phase(self._outer)
        self._outer = None
