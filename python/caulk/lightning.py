"""Lightning: memory per epoch, release after validation, warnings.

```python
from caulk.lightning import LeakCallback

trainer = Trainer(callbacks=[LeakCallback()])
```
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._watch import PlotAtEnd, Watch, WatchOptions

if TYPE_CHECKING or "pytorch_lightning" not in sys.modules or "lightning.pytorch" in sys.modules:
    from lightning.pytorch import Callback
else:
    # A program of the older package: its trainer takes callbacks of that one alone.
    from pytorch_lightning import Callback

__all__ = ["LeakCallback", "PlotCallback", "WatchOptions"]


class LeakCallback(Callback):
    """Logs memory at every epoch, releases it after validation, and warns.

    The figures go to the logger ``caulk`` (to standard error where logging is not set up), and as ``memory/rss`` and so on
    to the trainer's loggers.

    Parameters
    ----------
    options
        When to warn, and what to release.

    Examples
    --------
    >>> from lightning.pytorch import Trainer
    >>> trainer = Trainer(callbacks=[LeakCallback()], accelerator="cpu", logger=False, enable_checkpointing=False)
    """

    def __init__(self, options: WatchOptions | None = None) -> None:
        self.watch: Watch = Watch(options)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """The training begins."""
        self.watch.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        """A step is done."""
        self.watch.step()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """An epoch is done."""
        figures = self.watch.end_epoch()
        for logger in trainer.loggers:
            logger.log_metrics(figures, step=trainer.global_step)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """A validation is done, the sanity check apart."""
        if not trainer.sanity_checking:
            self.watch.end_validation()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """The training is done."""
        self.watch.end()


class PlotCallback(Callback):
    """Draws plots once, when the training ends, from the data of the last epoch.

    The module keeps data instead of drawing them: ``callback.plots.keep("confusion", matrix)``.

    Parameters
    ----------
    draw
        Called with a name and what was last kept under it.

    Examples
    --------
    >>> callback = PlotCallback(lambda name, data: print(f"draws {name} of {data}"))
    >>> for epoch in range(3):
    ...     callback.plots.keep("confusion", [epoch])
    >>> callback.plots.draw_all()  # the trainer does, at its end
    draws confusion of [2]
    """

    def __init__(self, draw: Any) -> None:
        self.plots: PlotAtEnd = PlotAtEnd(draw)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """The training is done: draws."""
        self.plots.draw_all()
