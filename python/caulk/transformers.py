"""Transformers: memory per epoch, release after evaluation, warnings.

```python
from caulk.transformers import LeakCallback

trainer = Trainer(model, arguments, callbacks=[LeakCallback()])
```
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ._watch import Watch, WatchOptions

__all__ = ["LeakCallback", "WatchOptions"]


class LeakCallback(TrainerCallback):
    """Logs memory at every epoch, releases it after evaluations, and warns.

    The figures go to the logger ``caulk`` (to standard error where logging is not set up), and into the trainer's log
    history.

    Parameters
    ----------
    options
        When to warn, and what to release.

    Examples
    --------
    >>> import torch
    >>> from transformers import Trainer
    >>> trainer = Trainer(torch.nn.Linear(2, 1), callbacks=[LeakCallback()])
    """

    def __init__(self, options: WatchOptions | None = None) -> None:
        self.watch: Watch = Watch(options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The training begins."""
        self.watch.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A step is done."""
        self.watch.step()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An epoch is done."""
        figures = self.watch.end_epoch()
        state.log_history.append({**figures, "epoch": state.epoch, "step": state.global_step})

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An evaluation is done."""
        self.watch.end_validation()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The training is done."""
        self.watch.end()
