"""A GPU has no memory: the report has the figures and the reason, whether or not the program caught the error."""

from __future__ import annotations

import pytest
from card import CARD

MB = 1 << 20

ENDS = (
    CARD
    + """
class OutOfMemoryError(RuntimeError):
    pass


kept = []
card.reserved, card.fraction = 1000 * MB, 0.25
for epoch in range(8):
    card.live = 500 * MB + epoch * 60 * MB
    caulk.epoch()
card.live = 990 * MB


def ask():
    caulk._agent.gpu_refused(0, 1100 * MB, 2000 * MB, 6000 * MB)
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 1.07 GiB. GPU 0 has")


ask()
"""
)


def test_the_end_by_it_has_the_allocators_figures_and_the_limit(run_caulk):
    run = run_caulk(ENDS)
    ending = run.report["run"]["ending"]
    assert (ending["kind"], ending["type"]) == ("cuda-out-of-memory", "OutOfMemoryError"), run.told()
    assert ending["limit"] == {"kind": "cuda_fraction", "bytes": 2000 * MB}, run.told()
    gpu = ending["gpu"]
    assert ending["asked_bytes"] == gpu["asked_bytes"] == 1100 * MB, run.told()
    assert (gpu["allocated_bytes"], gpu["reserved_bytes"]) == (990 * MB, 1000 * MB), run.told()
    assert gpu["shortage"] == "fraction", run.told()
    line = ENDS[: ENDS.index("caulk._agent.gpu_refused")].count("\n") + 1
    assert (gpu["file"].rpartition("/")[2], gpu["line"]) == ("program.py", line), run.told()
    assert "GPU ran out of memory" in run.stderr and "set_per_process_memory_fraction" in run.stderr, run.told()
    assert not run.notes_about("gpu-refused"), run.told()


CAUGHT = (
    CARD
    + """
card.live, card.reserved = 900 * MB, 1500 * MB
card.segments = [segment((1, 900 * MB), (0, 200 * MB), (1, 0), (0, 400 * MB))]
for epoch in range(6):
    if epoch > 2:
        caulk._agent.gpu_refused(0, 500 * MB, card.total, 100 * MB)
    caulk.epoch()
print("done")
"""
)


def test_those_that_the_program_survives_are_a_note_with_their_number(run_caulk):
    run = run_caulk(CAUGHT)
    assert (run.code, run.stdout) == (0, "done\n"), run.told()
    assert run.report["run"]["ending"]["kind"] == "ok" and "gpu" not in run.report["run"]["ending"], run.told()
    (note,) = run.notes_about("gpu-refused")
    assert "3 times" in note and "500 MB" in note, run.told()
    assert "in pieces, the largest has 400 MB" in note, run.told()


ATTACHED = """\
import torch

observers = []
torch._C._cuda_attach_out_of_memory_observer = observers.append
torch._C._cuda_init = lambda: None
torch.cuda.device_count = lambda: 0
assert not observers
torch.cuda.init()
import caulk

for epoch in range(3):
    caulk.epoch()
assert [observer(0, 77 << 20, 8 << 30, 5 << 20) for observer in observers] == [None]
caulk.epoch()
"""


def test_torch_attaches_the_observer_when_the_program_initialises_cuda(run_caulk):
    pytest.importorskip("torch")
    run = run_caulk(ATTACHED)
    assert run.code == 0, run.told()
    (note,) = run.notes_about("gpu-refused")
    assert "once" in note and "77.0 MB" in note, run.told()
