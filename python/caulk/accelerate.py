"""Accelerate: memory per epoch, release after validation, warnings, in a loop of one's own.

```python
from caulk.accelerate import LeakWatch

watch = LeakWatch(accelerator)
for epoch in range(epochs):
    for batch in loader:
        ...
        watch.step()
    validate()
    watch.end_validation()
    watch.end_epoch()
```
"""

from __future__ import annotations

from typing import Any

from ._watch import Watch, WatchOptions

__all__ = ["LeakWatch", "WatchOptions"]


class LeakWatch(Watch):
    """A watch whose figures go to the accelerator's trackers, from the main process alone.

    Parameters
    ----------
    accelerator
        An ``accelerate.Accelerator``.
    options
        When to warn, and what to release.

    Examples
    --------
    >>> from accelerate import Accelerator
    >>> watch = LeakWatch(Accelerator(cpu=True))
    >>> watch.step()
    >>> watch.end_epoch()["memory/rss"] > 0
    True
    """

    def __init__(self, accelerator: Any, options: WatchOptions | None = None) -> None:
        def log(figures: Any, step: int) -> None:
            accelerator.log(dict(figures), step=step)

        super().__init__(options, (log,))
