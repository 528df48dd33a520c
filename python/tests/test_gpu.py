"""Memory on GPUs: what torch's allocator says becomes a verdict. Without a GPU a stand-in for `torch.cuda` says it."""

from __future__ import annotations

from pathlib import Path

import pytest

MB = 1 << 20

STAND_IN = """\
import sys
import types

import caulk

allocated = [1000 << 20, 0]


def stats(device):
    def current(count):
        return {{"all": {{"current": count, "peak": count}}}}

    {failure}
    return {{
        "allocated_bytes": current(allocated[device]),
        "reserved_bytes": current(2000 << 20),
        "inactive_split_bytes": current(600 << 20),
        "num_alloc_retries": 2,
    }}


cuda = types.ModuleType("torch.cuda")
cuda._initialized = {initialized}
cuda.device_count = lambda: 2
cuda.memory_stats_as_nested_dict = stats
sys.modules["torch.cuda"] = cuda
for epoch in range(8):
    allocated[1] += 10 << 20
    caulk.epoch()
"""


def test_growth_on_any_device_is_a_verdict_and_the_allocators_trouble_is_told(run_caulk):
    run = run_caulk(STAND_IN.format(initialized=True, failure=""))
    assert run.code == 0, run.told()
    verdict = run.verdict("cuda_allocated")
    assert verdict is not None and verdict["state"] == "grows", run.told()
    assert verdict["bytes_per_epoch"] == pytest.approx(10 * MB, rel=1e-6), run.told()
    assert verdict["last"] == 1080 * MB, run.told()
    assert run.verdict()["state"] != "grows", run.told()
    assert "GPU memory grows by 10.0 MB per epoch" in run.stderr, run.told()
    notes = " ".join(run.report["notes"])
    assert "1.17 GB of 3.91 GB" in notes and "full 4 times" in notes, run.told()


@pytest.mark.parametrize(
    ("initialized", "failure"),
    [(False, "raise SystemExit('asked without need')"), (True, "raise RuntimeError('no such device')")],
    ids=["never used", "does not answer"],
)
def test_without_figures_nothing_is_said_of_gpus(run_caulk, initialized, failure):
    run = run_caulk(STAND_IN.format(initialized=initialized, failure=failure))
    assert run.code == 0 and run.stdout == "", run.told()
    assert run.verdict("cuda_allocated") is None, run.told()
    assert "GPU" not in run.stderr, run.told()


KEPT = """\
import caulk
import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.Tanh()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept = []


def step():
    optimizer.zero_grad()
    loss = model(torch.randn(1024, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()


for epoch in range(12):
    for _ in range(4):
        step()
    kept.append({stored})
    caulk.epoch()
"""


@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no GPU: nothing was run on a device")
@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        ("torch.zeros(1024, 1024, device='cuda')", "global-accumulation"),
        ("model(torch.randn(1024, 1024, device='cuda')).mean()", "graph-kept-in-container"),
    ],
    ids=["tensors", "graphs"],
)
def test_what_is_kept_on_a_device_is_named_at_its_line(run_caulk, stored, kind):
    program = KEPT.format(stored=stored)
    run = run_caulk(program)
    line = next(number for number, text in enumerate(program.splitlines(), 1) if "kept.append" in text)
    assert run.verdict("cuda_allocated")["state"] == "grows", run.told()
    finding = run.alarm_at("program.py", line)
    assert finding is not None and finding["class"] == kind, run.told()
    assert finding["growth"]["series"] == "cuda_allocated", run.told()
