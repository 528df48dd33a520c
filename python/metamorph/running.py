"""Whether a program's memory grows when it runs: bytes of its own and its children's, read at the end of each epoch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from .checking import write
from .program import Program

SECONDS = 180
"""A program that takes longer is ended, and counts as one that failed."""
WARM_UP = 2
"""Epochs left out: pools and caches fill up."""


class Failed(Exception):
    """A program that did not end well, with what it printed."""


def grows(program: Program) -> bool:
    """Whether it grows by more than half of what its scenario does when it leaks."""
    return growth(program) > program.grows_by / 2


def growth(program: Program) -> float:
    """Bytes per epoch after the warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        write(program, Path(folder))
        words = [sys.executable, str(program.entry), *program.arguments]
        # One thread: the pools of several are of different size in every run.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        with (
            open(Path(folder) / "stderr.txt", "w+") as errors,
            subprocess.Popen(
                words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as run,
        ):
            limit = threading.Timer(SECONDS, run.kill)
            limit.start()
            readings = [resident(run.pid) for line in run.stdout or () if line.startswith("epoch ")]
            code = run.wait()
            limit.cancel()
            errors.seek(0)
            said = errors.read()
    if code or len(readings) < WARM_UP + 2:
        raise Failed(f"{program.id} ended with {code} after {len(readings)} epochs\n{said[-2000:]}")
    counted = readings[WARM_UP:]
    return (counted[-1] - counted[0]) / (len(counted) - 1)


def resident(pid: int) -> int:
    """Anonymous and shared bytes of a process and those below it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        below = [
            word for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
        ]
    except OSError:
        return 0
    sizes = [line.split()[1] for line in status.split("\n") if line.startswith(("RssAnon", "RssShmem"))]
    return 1024 * sum(map(int, sizes)) + sum(resident(int(child)) for child in below)
