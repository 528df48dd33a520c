"""Does memory stay flat while a function or a loop repeats?"""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from . import _agent
from ._leaks import LeakFound, grown_since, in_use
from ._looking import prepare

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Fewest readings, the first one included, whose trend is judged.
_FEWEST = 3


@overload
def flat(subject: F, /, *, repeats: int = 5, warmup: int = 2, min_bytes: int = 64 * 1024) -> F: ...
@overload
def flat(subject: Iterable[T], /, *, repeats: int = 5, warmup: int = 2, min_bytes: int = 64 * 1024) -> Iterator[T]: ...
@overload
def flat(
    subject: None = None, /, *, repeats: int = 5, warmup: int = 2, min_bytes: int = 64 * 1024
) -> Callable[[F], F]: ...
def flat(subject: Any = None, /, *, repeats: int = 5, warmup: int = 2, min_bytes: int = 64 * 1024) -> Any:
    """Fails when a function, or the body of a loop, keeps more memory with every repetition.

    As a decorator it calls the function `warmup` times and then `repeats` times more, and returns what the last call
    returned. Around an iterable it reads memory each time the loop comes round. What the first rounds load or cache is not
    judged, and neither is memory that stops growing: both halves of the repetitions have to grow.

    Parameters
    ----------
    subject
        The function, or what a `for` loop goes through.
    repeats
        Calls that are judged. A loop is judged over all its turns after the warm-up.
    warmup
        Calls, or turns, that are not judged.
    min_bytes
        Growth per repetition, host and GPU together, from which on it fails.

    Raises
    ------
    LeakFound
        With the containers that grew and the lines that may have grown them.

    Examples
    --------
    >>> @flat
    ... def epoch():
    ...     return len([bytearray(1024) for _ in range(100)])
    >>> epoch()
    100
    >>> for _ in flat(range(8)):
    ...     rows = [bytearray(1024)]
    """
    if repeats < _FEWEST or warmup < 0:
        raise ValueError(f"flat needs at least {_FEWEST} repeats and no negative warm-up")
    if subject is None:
        return functools.partial(flat, repeats=repeats, warmup=warmup, min_bytes=min_bytes)
    if callable(subject):
        return _function(subject, repeats, warmup, min_bytes)
    return _turns(subject, warmup, min_bytes)


def _function(function: Any, repeats: int, warmup: int, min_bytes: int) -> Any:
    if inspect.iscoroutinefunction(function):
        raise TypeError("flat cannot repeat an `async def` function")

    @functools.wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Any:
        for _ in range(warmup):
            function(*args, **kwargs)
        readings = Readings(min_bytes)
        result = None
        for _ in range(repeats):
            result = None
            readings.take()
            result = function(*args, **kwargs)
        if result is None:
            readings.take()
            readings.judge()
            return None
        # The result of the last call is the caller's, and no growth.
        readings.judge()
        return result

    return repeated


def _turns(iterable: Iterable[T], warmup: int, min_bytes: int) -> Iterator[T]:
    readings: Readings | None = None
    for turn, item in enumerate(iterable):
        if turn == warmup:
            readings = Readings(min_bytes)
        if readings is not None:
            readings.take()
        yield item
        del item
    if readings is not None:
        readings.take()
        readings.judge()


class Readings:
    """Bytes in use before each repetition and after the last one."""

    def __init__(self, min_bytes: int) -> None:
        prepare()
        gc.collect()
        self._min_bytes = min_bytes
        self._levels: list[int] = []
        self._lengths: Any = _agent.Lengths()

    def take(self) -> None:
        """One reading; what waits for the collector is collected first."""
        gc.collect()
        self._levels.append(in_use())

    def judge(self) -> None:
        """Raises where both halves grew by as much as counts."""
        if len(self._levels) < _FEWEST:
            return
        middle = len(self._levels) // 2
        halves = [self._levels[: middle + 1], self._levels[middle:]]
        if all(half[-1] - half[0] >= (len(half) - 1) * self._min_bytes for half in halves):
            growth = self._levels[-1] - self._levels[0]
            raise LeakFound(growth, grown_since(self._lengths))
