"""Memory over the steps of a training, and whether it grows."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from . import _agent
from ._leaks import in_use
from ._memory import MemoryUsage, format_bytes, get_memory_usage

#: Readings that are kept; beyond, every other one is dropped and half as many are taken.
_MOST_READINGS = 2048


class Reading(NamedTuple):
    """Memory at one step, in bytes, and the seconds since the start."""

    step: int
    seconds: float
    rss: int
    in_use: int
    gpu_allocated: int


class TrackerReport(NamedTuple):
    """What a tracker says so far.

    Attributes
    ----------
    name
        The tracker's.
    steps
        Steps counted.
    usage
        Memory now.
    rss_gained
        Bytes by which the resident set has grown since the start.
    rss_peak
        Highest resident set among the readings, in bytes.
    state
        ``grows``, ``plateaus``, ``sawtooth``, ``flat`` or ``undecided``: of the bytes in use.
    bytes_per_step
        Growth of the bytes in use per step (Theil-Sen).
    interval
        Its interval at 95 %; ``None`` for few readings.
    text
        What the verdict rests on.
    """

    name: str
    steps: int
    usage: MemoryUsage
    rss_gained: int
    rss_peak: int
    state: str
    bytes_per_step: float
    interval: tuple[float, float] | None
    text: str

    def __str__(self) -> str:
        said = {
            "grows": f"grows by {format_bytes(self.bytes_per_step)} per step{self._range()}",
            "plateaus": "rose and stopped",
            "sawtooth": "rises and comes back",
            "flat": "does not grow",
        }
        sign = "+" if self.rss_gained >= 0 else ""
        figures = f"{self.usage} ({sign}{format_bytes(self.rss_gained)}, peak {format_bytes(self.rss_peak)})"
        name = f"{self.name}: " if self.name else ""
        verdict = said.get(self.state, "too few readings to say whether it grows")
        return f"{name}{self.steps} steps: {figures}; memory in use {verdict}"

    def _range(self) -> str:
        if self.interval is None:
            return ""
        low, high = self.interval
        return f" ({format_bytes(low)} to {format_bytes(high)} with 95 % confidence)"


class MemoryTracker:
    """Reads memory every few steps and judges whether it grows.

    Parameters
    ----------
    name
        Name in reports.
    every
        Steps between two readings, of which one takes 0.1 to 1 ms.

    Raises
    ------
    ValueError
        If `every` is less than 1.

    Examples
    --------
    >>> tracker = MemoryTracker("fit")
    >>> tracker.start()
    >>> for batch in range(100):
    ...     tracker.step()
    >>> tracker.report().steps
    100
    """

    def __init__(self, name: str = "", *, every: int = 10) -> None:
        if every < 1:
            raise ValueError(f"readings are at least one step apart, not {every}")
        self._name = name
        self._every = every
        self._readings: list[Reading] = []
        self._began: float | None = None
        self._steps = 0

    def start(self) -> None:
        """Begins, or begins anew: forgets all readings."""
        self._readings = []
        self._steps = 0
        self._began = time.monotonic()
        self._read()

    def step(self, count: int = 1) -> None:
        """So many more steps are done. Starts the tracker where that was forgotten."""
        if self._began is None:
            self.start()
        before = self._steps // self._every
        self._steps += count
        if self._steps // self._every != before:
            self._read()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All readings that are kept, the oldest first."""
        return tuple(self._readings)

    def report(self) -> TrackerReport:
        """What there is to say now; as text a line for a log.

        Raises
        ------
        RuntimeError
            If the tracker was never started.
        """
        if self._began is None:
            raise RuntimeError("the tracker was not started: call `start()` first")
        usage = get_memory_usage()
        readings = self._readings
        points = [(float(reading.step), float(reading.in_use)) for reading in readings]
        state, slope, interval, _, text = _agent.judge_bytes(points)
        peak = max(usage.rss, *(reading.rss for reading in readings))
        gained = usage.rss - readings[0].rss
        return TrackerReport(self._name, self._steps, usage, gained, peak, state, slope, interval, text)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the readings into an image file; its ending says which kind.

        Parameters
        ----------
        path
            File to write: ``memory.png``, ``memory.svg``.

        Raises
        ------
        ImportError
            Where matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("plots need matplotlib: `pip install matplotlib`") from error
        # No pyplot: a figure of its own is registered nowhere and freed with its last reference.
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes: Any = figure.subplots()
        steps = [reading.step for reading in self._readings]
        axes.plot(steps, [reading.rss / 1024**2 for reading in self._readings], label="resident")
        axes.plot(steps, [reading.in_use / 1024**2 for reading in self._readings], label="in use")
        if any(reading.gpu_allocated for reading in self._readings):
            axes.plot(steps, [reading.gpu_allocated / 1024**2 for reading in self._readings], label="GPU")
        axes.set_xlabel("step")
        axes.set_ylabel("memory in MB")
        axes.set_title(self._name or "memory")
        axes.legend()
        figure.savefig(path)

    def _read(self) -> None:
        usage = get_memory_usage()
        seconds = time.monotonic() - (self._began or 0.0)
        self._readings.append(Reading(self._steps, seconds, usage.rss, in_use(), usage.gpu_allocated))
        if len(self._readings) > _MOST_READINGS:
            self._readings = self._readings[::2]
            self._every *= 2
