"""Marks for `caulk run`, where it cannot tell the epochs and steps of a program by itself.

Without `caulk run` these do nothing and cost next to nothing. Importing caulk imports nothing else.

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

__all__ = ["epoch", "phase", "step"]

#: Set by `caulk._bootstrap` under `caulk run`.
_marks = None

_PHASES = ("train", "validation", "test")


def epoch():
    """Says that an epoch begins or ends here. Call it once per epoch, always at the same place."""
    if _marks is not None:
        _marks.said_epoch()


def step():
    """Says that an optimizer step, or what counts as one, is done. Steps that caulk sees itself no longer count then."""
    if _marks is not None:
        _marks.said_step()


class phase:
    """Says what the program does inside: `train`, `validation` or `test`."""

    __slots__ = ("_name", "_outer")

    def __init__(self, name):
        if name not in _PHASES:
            raise ValueError(f"phase is one of {', '.join(_PHASES)}, not {name!r}")
        self._name = name
        self._outer = None

    def __enter__(self):
        if _marks is not None:
            self._outer = _marks.enter_phase(_PHASES.index(self._name) + 1)
        return self

    def __exit__(self, *_):
        if _marks is not None and self._outer is not None:
            _marks.leave_phase(self._outer)
        self._outer = None
