"""What the integrations share: memory per epoch, release after validation, warnings before it is too late."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ._logging import say
from ._memory import MemoryUsage, aggressive_gc, format_bytes, get_memory_usage, used_cuda

#: Steps whose times are compared with the newest ones.
_USUAL_STEPS = 50
#: Newest steps that must all be slow.
_SLOW_STEPS = 5

#: Takes figures in bytes (times in seconds) by name, and the step at which they were read.
Sink = Callable[[Mapping[str, float], int], None]


@dataclass(frozen=True)
class WatchOptions:
    """When to warn, and what to release.

    Parameters
    ----------
    host_growth
        Warn when the resident set stands this many bytes above where the first epoch ended.
    gpu_share
        Warn when this share of the GPU's memory is taken.
    slow_factor
        Warn when steps take this many times as long as they usually do.
    temperature
        Warn when the GPU is at least this hot, in degrees Celsius; read where torch can read it.
    release_after_validation
        Collect garbage and empty torch's GPU cache when a validation has ended.
    collect_after_epoch
        Collect garbage when a training epoch has ended.
    """

    host_growth: int = 2 * 1024**3
    gpu_share: float = 0.95
    slow_factor: float = 3.0
    temperature: float = 85.0
    release_after_validation: bool = True
    collect_after_epoch: bool = True

    def __post_init__(self) -> None:
        if self.host_growth <= 0 or not 0 < self.gpu_share <= 1 or self.slow_factor <= 1:
            raise ValueError("host_growth must be positive, gpu_share in (0, 1] and slow_factor above 1")


class Watch:
    """Memory over a training, as a framework's hooks tell where it is.

    What it has to say goes to the logger ``caulk``, and to standard error where logging is not set up.

    Parameters
    ----------
    options
        When to warn, and what to release.
    sinks
        Where the figures of each epoch go, beside the log.

    Examples
    --------
    >>> watch = Watch(WatchOptions(host_growth=8 * 1024**3))
    >>> watch.begin()
    >>> for batch in range(10):
    ...     watch.step()
    >>> watch.end_validation()
    >>> watch.end_epoch()["memory/rss"] > 0, watch.warnings
    (True, [])
    """

    def __init__(self, options: WatchOptions | None = None, sinks: tuple[Sink, ...] = ()) -> None:
        self.options: WatchOptions = options or WatchOptions()
        self._sinks = sinks
        self._reset()

    def _reset(self) -> None:
        self.warnings: list[str] = []
        self._warned: set[str] = set()
        self._base: int | None = None
        self._step_times: list[float] = []
        self._last_step: float | None = None
        self._steps = 0
        self._epochs = 0

    def begin(self) -> None:
        """The training begins: what was measured before does not count."""
        self._reset()
        say(logging.INFO, f"training begins: {get_memory_usage()}")

    def pause(self) -> None:
        """What follows is no training step: its time does not count."""
        self._last_step = None

    def step(self) -> None:
        """A training step is done."""
        now = time.monotonic()
        self._steps += 1
        if self._last_step is not None:
            self._step_times.append(now - self._last_step)
            del self._step_times[: -_USUAL_STEPS - _SLOW_STEPS]
            self._look_at_times()
        self._last_step = now

    def end_epoch(self) -> dict[str, float]:
        """A training epoch has ended: collects, logs, warns; returns the figures."""
        if self.options.collect_after_epoch:
            gc.collect()
        usage = get_memory_usage()
        self._epochs += 1
        if self._base is None:
            # Where the first epoch ends: model, optimizer states and caches are there.
            self._base = usage.rss
        figures = self._figures(usage)
        for sink in self._sinks:
            sink(figures, self._steps)
        since = _signed(usage.rss - self._base)
        say(logging.INFO, f"epoch {self._epochs}: {usage} ({since} since the first)")
        self._look_at_memory(usage)
        self.pause()
        return figures

    def end_validation(self) -> None:
        """A validation has ended: releases what it left, and says how much that was."""
        if self.options.release_after_validation:
            say(logging.INFO, f"after validation: {aggressive_gc()}; now {get_memory_usage()}")
        self.pause()

    def end(self) -> None:
        """The training has ended."""
        say(logging.INFO, f"training ends after {self._steps} steps: {get_memory_usage()}")

    def _figures(self, usage: MemoryUsage) -> dict[str, float]:
        figures: dict[str, float] = {"memory/rss": usage.rss, "memory/swap": usage.swap}
        if usage.gpu_free is not None:
            figures["memory/gpu_allocated"] = usage.gpu_allocated
            figures["memory/gpu_reserved"] = usage.gpu_reserved
            figures["memory/gpu_free"] = usage.gpu_free
        if self._step_times:
            figures["time/step"] = median(self._step_times)
        return figures

    def _look_at_memory(self, usage: MemoryUsage) -> None:
        grown = usage.rss - (self._base or usage.rss)
        if grown >= self.options.host_growth:
            advice = "run the training under `caulk run` to see what keeps it"
            self._warn("host", f"host memory has grown by {format_bytes(grown)} since the first epoch; {advice}")
        cuda = used_cuda()
        if cuda is None:
            return
        free, total = cuda.mem_get_info()
        taken = 1 - free / total
        if taken >= self.options.gpu_share:
            self._warn("gpu", f"{taken:.0%} of the GPU's {format_bytes(total)} are taken; a larger batch may not fit")
        hot = _temperature(cuda)
        if hot is not None and hot >= self.options.temperature:
            self._warn("heat", f"the GPU is at {hot:.0f} °C and may slow itself down")

    def _look_at_times(self) -> None:
        usual, newest = self._step_times[:-_SLOW_STEPS], self._step_times[-_SLOW_STEPS:]
        if len(usual) < 2 * _SLOW_STEPS:
            return
        before, now = median(usual), min(newest)
        if now >= self.options.slow_factor * before:
            self._warn(
                "slow",
                f"steps take {now:.3g} s, {now / before:.1f} times as long as before: memory that is swapped or "
                "reclaimed, heat, a data source that cannot keep up, or more work in each of them",
            )

    def _warn(self, kind: str, text: str) -> None:
        """Each kind once per training: the figures of each epoch say how it goes on."""
        if kind not in self._warned:
            self._warned.add(kind)
            self.warnings.append(text)
            say(logging.WARNING, text)


def _temperature(cuda: Any) -> float | None:
    """Degrees Celsius; torch asks NVML, which may not be installed."""
    try:
        return float(cuda.temperature())
    except Exception:
        return None


def _signed(count: int) -> str:
    return f"{'+' if count >= 0 else ''}{format_bytes(count)}"


def to_tensorboard(writer: Any) -> Sink:
    """Figures to a TensorBoard `SummaryWriter`.

    Parameters
    ----------
    writer
        A ``torch.utils.tensorboard.SummaryWriter`` or anything else with its `add_scalar`.

    Examples
    --------
    >>> class Writer:
    ...     def add_scalar(self, name, value, step): print(name, value, step)
    >>> to_tensorboard(Writer())({"memory/rss": 1024.0}, 3)
    memory/rss 1024.0 3
    """

    def write(figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            writer.add_scalar(name, value, step)

    return write


def to_wandb(run: Any) -> Sink:
    """Figures to a run of Weights & Biases.

    Parameters
    ----------
    run
        What ``wandb.init`` returned.

    Examples
    --------
    >>> class Run:
    ...     def log(self, figures): print(figures)
    >>> to_wandb(Run())({"memory/rss": 1024.0}, 3)
    {'memory/rss': 1024.0, 'memory/step': 3}
    """

    def write(figures: Mapping[str, float], step: int) -> None:
        # Beside the program's own step, which must not go back.
        run.log({**figures, "memory/step": step})

    return write


class PlotAtEnd:
    """Keeps the last data of plots that are drawn every epoch, and draws them once.

    Parameters
    ----------
    draw
        Called with what was last kept under each name: ``draw(name, data)``.

    Examples
    --------
    >>> drawn = []
    >>> plots = PlotAtEnd(lambda name, data: drawn.append((name, data)))
    >>> for epoch in range(3):
    ...     plots.keep("confusion", [epoch])
    >>> plots.draw_all()
    >>> drawn
    [('confusion', [2])]
    """

    def __init__(self, draw: Callable[[str, Any], object]) -> None:
        self._draw = draw
        self._data: dict[str, Any] = {}

    def keep(self, name: str, data: Any) -> None:
        """Keeps data in place of what was kept before under this name; tensors without graph, on the host."""
        from ._trees import detach_to_cpu

        self._data[name] = detach_to_cpu(data)

    def draw_all(self) -> None:
        """Draws everything that is kept, and lets it go."""
        data, self._data = self._data, {}
        for name, kept in data.items():
            self._draw(name, kept)
