"""The list of what is held is of the last seconds: as memory comes near to a limit, before SIGTERM, at the end."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from harness import Run

# Five epochs of 100 steps and a half, with an epoch's end every 0.4 s; the program then ends in the way that is asked for.
PROGRAM = """\
import os, signal, sys, time
import torch

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(100, 64)), batch_size=1)
kept = []
for epoch in range(7):
    for step, (batch,) in enumerate(data):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        kept.append(torch.ones(20_000))
        time.sleep(0.004)
        if epoch == 6 and step == 50:
            print(len(kept), flush=True)
            if sys.argv[1] == "term":
                os.kill(os.getppid(), signal.SIGTERM)
            elif sys.argv[1] == "kill":
                ballast = torch.ones(int(sys.argv[2]) // 4)
                until = time.monotonic() + 1
                while time.monotonic() < until:
                    optimizer.step()
                    time.sleep(0.004)
                os.kill(os.getpid(), signal.SIGKILL)
"""


def held(run: Run) -> int:
    """Elements of the list when it was last looked at."""
    (finding,) = run.alarms
    assert finding["holder"] == "kept", run.told()
    return finding["growth"]["elements"]


def test_a_program_is_looked_at_before_a_signal_that_ends_it(run_caulk: Callable[..., Run]) -> None:
    pytest.importorskip("torch")
    run = run_caulk(PROGRAM, "term")
    assert run.code == 128 + signal.SIGTERM, run.told()
    at_signal = int(run.stdout.split()[0])
    assert at_signal <= held(run) <= at_signal + 50, run.told()


def test_a_program_is_looked_at_as_its_memory_comes_near_to_a_limit(run_caulk: Callable[..., Run]) -> None:
    pytest.importorskip("torch")
    first = run_caulk(PROGRAM, "end")
    peak = first.report["summary"]["peak_bytes"]
    # Half of the budget until the end, then 95 % of it at once.
    run = run_caulk(PROGRAM, "kill", str(int(0.9 * peak)), options=("--budget", f"{int(2 * peak)}B"))
    assert run.code == 128 + signal.SIGKILL, run.told()
    assert held(run) == int(run.stdout.split()[0]), run.told()


def test_an_orderly_end_is_looked_at(run_caulk: Callable[..., Run]) -> None:
    pytest.importorskip("torch")
    assert held(run_caulk(PROGRAM, "end")) == 700
