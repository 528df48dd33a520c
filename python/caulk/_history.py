"""Histories that stay small however long a training runs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from ._trees import detach_to_cpu, is_tensor


class Statistics(NamedTuple):
    """Of all numbers that ever passed through a history.

    Attributes
    ----------
    n
        How many.
    mean, std
        Mean and standard deviation (of the population); NaN where there were none.
    min, max
        Extremes; NaN where there were none.
    """

    n: int
    mean: float
    std: float
    min: float
    max: float


class BoundedHistory:
    """The newest values of a series, and statistics of all of them.

    Tensors of one element become numbers; larger ones lose their graph and move to host memory. A number is read from
    a GPU, which waits for it.

    Parameters
    ----------
    maxlen
        Values that are kept.

    Raises
    ------
    ValueError
        If `maxlen` is less than 1.

    Notes
    -----
    Mean and variance are updated by Welford's method (B. P. Welford, Technometrics 4, 1962).

    Examples
    --------
    >>> losses = BoundedHistory(maxlen=2)
    >>> for loss in (3.0, 1.0, 2.0):
    ...     losses.append(loss)
    >>> list(losses), losses.statistics.mean
    ([1.0, 2.0], 2.0)
    """

    def __init__(self, maxlen: int) -> None:
        if maxlen < 1:
            raise ValueError(f"a history keeps at least one value, not {maxlen}")
        self._values: deque[Any] = deque(maxlen=maxlen)
        self._reset()

    def _reset(self) -> None:
        self._values.clear()
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0
        self._min = math.nan
        self._max = math.nan

    @property
    def maxlen(self) -> int:
        """Values that are kept."""
        return self._values.maxlen or 0

    @property
    def statistics(self) -> Statistics:
        """Statistics of all numbers that passed, those that are no longer kept included."""
        if not self._count:
            return Statistics(0, math.nan, math.nan, math.nan, math.nan)
        return Statistics(self._count, self._mean, math.sqrt(self._squares / self._count), self._min, self._max)

    def append(self, value: Any) -> None:
        """Adds a value; the oldest leaves where there is no room."""
        if is_tensor(value):
            value = value.item() if value.numel() == 1 else detach_to_cpu(value)
        self._values.append(value)
        if isinstance(value, int | float):
            self._count_in(float(value))

    def extend(self, values: Any) -> None:
        """Adds values one after another."""
        for value in values:
            self.append(value)

    def clear(self) -> None:
        """Forgets the values and their statistics."""
        self._reset()

    def _count_in(self, value: float) -> None:
        self._count += 1
        off = value - self._mean
        self._mean += off / self._count
        self._squares += off * (value - self._mean)
        # `min(nan, x)` is NaN: the first value counts as it is.
        self._min = value if self._count == 1 else min(self._min, value)
        self._max = value if self._count == 1 else max(self._max, value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, index: int) -> Any:
        return self._values[index]

    def __repr__(self) -> str:
        return f"BoundedHistory({list(self._values)!r}, maxlen={self.maxlen})"


class OutputCollector:
    """Outputs of validation or test steps, bounded, without graphs, in host memory.

    Clear it when they have been used: at the end of an epoch.

    Parameters
    ----------
    max_items
        Outputs that are kept from here to the next `clear`; later ones are counted, not kept.

    Raises
    ------
    ValueError
        If `max_items` is less than 1.

    Examples
    --------
    >>> outputs = OutputCollector(max_items=2)
    >>> [outputs.append({"loss": step}) for step in range(3)]
    [True, True, False]
    >>> outputs.drain(), outputs.dropped, len(outputs)
    ([{'loss': 0}, {'loss': 1}], 1, 0)
    """

    def __init__(self, max_items: int) -> None:
        if max_items < 1:
            raise ValueError(f"a collector keeps at least one output, not {max_items}")
        self._max_items = max_items
        self._items: list[Any] = []
        #: Outputs that were not kept, since the last `clear` or the one that `drain` made.
        self.dropped: int = 0

    def append(self, output: Any) -> bool:
        """Keeps an output without its graphs, on the host; false where there is no room."""
        if len(self._items) >= self._max_items:
            self.dropped += 1
            return False
        self._items.append(detach_to_cpu(output))
        return True

    def drain(self) -> list[Any]:
        """Everything kept, which it then no longer keeps. `dropped` stays until the next output comes."""
        items, self._items = self._items, []
        return items

    def clear(self) -> None:
        """Forgets everything."""
        self._items = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)
