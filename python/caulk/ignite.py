"""PyTorch Ignite: memory per epoch, release after evaluation, warnings.

```python
from caulk.ignite import LeakHandler

LeakHandler().attach(trainer, evaluators=[evaluator])
```
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ignite.engine import Events

from ._watch import Watch, WatchOptions

__all__ = ["LeakHandler", "WatchOptions"]


class LeakHandler:
    """Logs memory at every epoch of a trainer, releases it after evaluators have run, and warns.

    The figures go to the logger ``caulk`` (to standard error where logging is not set up), and into
    ``trainer.state.metrics``.

    Parameters
    ----------
    options
        When to warn, and what to release.

    Examples
    --------
    >>> from ignite.engine import Engine
    >>> trainer = Engine(lambda engine, batch: batch)
    >>> LeakHandler().attach(trainer)
    >>> trainer.run([1, 2, 3]).metrics["memory/rss"] > 0
    True
    """

    def __init__(self, options: WatchOptions | None = None) -> None:
        self.watch: Watch = Watch(options)

    def attach(self, trainer: Any, evaluators: Iterable[Any] = ()) -> None:
        """Listens to the events of a trainer and of its evaluators.

        Parameters
        ----------
        trainer, evaluators
            Engines.
        """
        watch = self.watch
        trainer.add_event_handler(Events.STARTED, lambda engine: watch.begin())
        trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: watch.step())
        trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: engine.state.metrics.update(watch.end_epoch()))
        trainer.add_event_handler(Events.COMPLETED, lambda engine: watch.end())
        for evaluator in evaluators:
            evaluator.add_event_handler(Events.COMPLETED, lambda engine: watch.end_validation())
