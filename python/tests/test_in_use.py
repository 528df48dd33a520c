"""Bytes in use, counted block by block: while a program is stuck in C, after a kill, and at every boundary."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import CAULK, Run, program_environment

MB = 1_000_000

# Calls back into Python never, and holds the interpreter's lock all the time (`PyDLL`).
STUCK = """\
import ctypes, os, subprocess, sys, tempfile, time
source = os.path.join(tempfile.mkdtemp(), "stuck.c")
open(source, "w").write('''
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <malloc.h>
#include <stdio.h>
void stuck(int rounds, int killed) {
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 10000; i++) if (!malloc(1000)) return;
        usleep(100000);
    }
    struct mallinfo2 info = mallinfo2();
    dprintf(1, "%zu\\\\n", info.uordblks + info.hblkhd);
    if (killed) raise(SIGKILL);
}
''')
library = source[:-1] + "so"
subprocess.check_call(["cc", "-shared", "-fPIC", "-o", library, source])
own = ctypes.PyDLL(library)
own.stuck(int(sys.argv[1]), int(sys.argv[2]))
"""


def in_use_now(folder: Path) -> int | None:
    """What the report of a run that goes on says."""
    command = [str(CAULK), "report", "--format", "json", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["summary"]["in_use_at_end_bytes"] if done.stdout else None


def test_a_program_that_is_stuck_in_c_is_read_all_the_time(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STUCK)
    folder = tmp_path / "run"
    command = [str(CAULK), "run", "--output", str(folder), "--", sys.executable, str(program), "600", "0"]
    read: list[int] = []
    with subprocess.Popen(command, env=program_environment(), stderr=subprocess.PIPE, cwd=tmp_path) as running:
        for _ in range(600):
            now = in_use_now(folder)
            if now is not None and now > max(read, default=0) + 5 * MB:
                read.append(now)
            if len(read) > 6 or running.poll() is not None:
                break
            time.sleep(0.1)
        running.terminate()
        running.communicate()
    # It allocates 10 MB ten times a second, and is seen to.
    assert len(read) > 6, read


def test_a_program_that_is_killed_is_read_once_more(run_caulk: Callable[..., Run]) -> None:
    run = run_caulk(STUCK, "12", "1")
    assert run.code == 128 + signal.SIGKILL, run.told()
    said = int(run.stdout.split()[0])
    # The last figure is of after the last round: malloc's own, and some megabytes of pools for small objects.
    end = run.report["summary"]["in_use_at_end_bytes"]
    assert said > 120 * MB and -0.005 * said < end - said < 8 * MB, (said, end)
    assert " in use at the end" in run.stderr, run.told()


FRAGMENTED = """\
import ctypes, threading
import torch

own = ctypes.CDLL(None)
own.malloc.restype = ctypes.c_void_p
own.malloc.argtypes = [ctypes.c_size_t]
own.free.argtypes = [ctypes.c_void_p]

def fill(count):
    # Every second block of many sizes is free: each stays in a list that malloc looks through.
    blocks = [own.malloc(1100 + 16 * (i % 800)) for i in range(count)]
    for block in blocks[::2]:
        own.free(block)
    turn.wait()
    done.wait()

turn, done = threading.Barrier(9), threading.Event()
threads = [threading.Thread(target=fill, args=(25_000,), daemon=True) for _ in range(8)]
for thread in threads:
    thread.start()
turn.wait()

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(160, 8)), batch_size=8)
kept = []
for epoch in range(40):
    for (batch,) in data:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    kept.append(own.malloc(10_000_000))
done.set()
"""


@pytest.mark.parametrize("heap", [True, False])
def test_every_epoch_of_a_program_with_a_fragmented_heap_has_a_figure(
    run_caulk: Callable[..., Run], *, heap: bool
) -> None:
    pytest.importorskip("torch")
    run = run_caulk(FRAGMENTED, options=() if heap else ("--no-heap",), env={"MALLOC_ARENA_MAX": "64"})
    in_use = run.verdict()
    assert in_use, run.told()
    if not heap:
        # Nobody counts: malloc itself tells, at its price, which is paid for the first epochs and those at growing distances.
        assert in_use["unit"] == "epoch" and in_use["boundaries"] >= 10, run.told()
        assert in_use["state"] == "grows" and 9.5 * MB < in_use["bytes_per_unit"] < 10.5 * MB, run.told()
        left_out = run.notes_about("readings-left-out")
        assert len(left_out) == (in_use["boundaries"] < 40), run.told()
        return
    assert in_use["unit"] == "epoch" and in_use["boundaries"] >= 40, run.told()
    assert in_use["state"] == "grows" and 9.9 * MB < in_use["bytes_per_unit"] < 10.1 * MB, run.told()
