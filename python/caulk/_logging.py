"""Lines for the user: logged, and seen where logging is not set up, too.

Python itself shows no line below ``WARNING`` then. What the program has set up decides: its handlers, its levels, its
filters; nothing of it is changed here.
"""

from __future__ import annotations

import logging
import os
import sys

#: What processes of one training are numbered by, as Lightning looks for it.
_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")

_log = logging.getLogger("caulk")


def say(level: int, text: str, logger: logging.Logger | None = None) -> None:
    """Logs a text.

    Where no handler would see it, it goes to standard error: of several processes that train together the first alone
    says what is below ``WARNING``. A level that is set on the logger, on one above it or, other than ``WARNING``, on the
    root still counts.
    """
    log = logger or _log
    if not isinstance(log, logging.Logger) or _is_set_up(log):
        # By its record the line is our caller's.
        log.log(level, "%s", text, stacklevel=2)
        return
    rank = _rank()
    if level < max(_threshold(log), log.manager.disable + 1) or log.disabled or (rank and level < logging.WARNING):
        return
    record = log.makeRecord(log.name, level, "", 0, text, (), None)
    if log.filter(record):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_start(level, rank) + "%(message)s"))
        handler.handle(record)


def _is_set_up(log: logging.Logger) -> bool:
    """Has the program said where lines go, or that they go nowhere?"""
    if log.hasHandlers() or logging.lastResort is None:
        return True
    above: logging.Logger | None = log
    while above is not None and above.propagate:
        above = above.parent
    return above is not None


def _threshold(log: logging.Logger) -> int:
    """The level that the program has set, else ``INFO``. The root has ``WARNING`` without anybody's doing."""
    root = log.manager.root
    above: logging.Logger | None = log
    while above is not None and above is not root:
        if above.level:
            return above.level
        above = above.parent
    return logging.INFO if root.level == logging.WARNING else root.level


def _rank() -> int:
    """Number of this process among those that train together."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    numbers = (os.environ.get(name, "") for name in _RANKS)
    return next((int(number) for number in numbers if number.isdecimal()), 0)


def _start(level: int, rank: int) -> str:
    of = f" [rank {rank}]" if rank else ""
    return f"caulk{of}: warning: " if level >= logging.WARNING else f"caulk{of}: "
