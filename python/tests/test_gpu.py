"""Memory on GPUs: what torch's allocator says becomes a verdict. Without a GPU a stand-in for `torch.cuda` says it."""

from __future__ import annotations

import shutil
import subprocess
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
    assert "4 times" in " ".join(run.notes_about("gpu-allocator")), run.told()
    (gaps,) = [finding for finding in run.findings if finding["class"] == "allocator-fragmentation"]
    assert gaps["severity"] == "info" and "1.17 GB (30 %)" in gaps["message"], run.told()


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


RECORDS = """\
import sys
import types

import caulk

allocated = [1000 << 20]
asked = []


def stats(device):
    def current(count):
        return {{"all": {{"current": count}}}}

    return {{"allocated_bytes": current(allocated[0]), "reserved_bytes": current(2000 << 20), "allocation": current({blocks})}}


def record(**options):
    asked.append(options["enabled"])
    assert options["enabled"] is None or options == dict(enabled="state", context="state", stacks="python", max_entries=1)


def make():
    allocated[0] += 10 << 20


def snapshot():
    frames = [
        {{"filename": "/lib/site-packages/torch/nn.py", "line": 7, "name": "forward"}},
        {{"filename": __file__, "line": make.__code__.co_firstlineno + 1, "name": "make"}},
        {{"filename": __file__, "line": 1, "name": "<module>"}},
    ]
    block = {{"size": 10 << 20, "state": "active_allocated", "frames": frames}}
    before = {{"size": 900 << 20, "state": "active_allocated", "frames": []}}
    free = {{"size": 100 << 20, "state": "inactive", "frames": frames}}
    return {{"segments": [{{"blocks": [before, block, free]}}], "device_traces": [{traces}, []]}}


def module(name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made


module("torch.cuda", _initialized=True, device_count=lambda: 1, memory_stats_as_nested_dict=stats)
module("torch.cuda.memory", _record_memory_history=record, _snapshot=snapshot)
module("torch._C", _cuda_isHistoryEnabled=lambda: {recorded})
for epoch in range(12):
    make()
    caulk.epoch()
print(asked)
"""


def recording(run_caulk, blocks=5, traces="['the last event']", recorded=False):
    return run_caulk(RECORDS.format(blocks=blocks, traces=traces, recorded=recorded))


def test_the_line_that_makes_what_stays_is_told_from_torchs_record_of_one_epoch(run_caulk):
    run = recording(run_caulk)
    assert run.stdout == "['state', None]\n", run.told()
    line = RECORDS[: RECORDS.index("allocated[0] +=")].count("\n") + 1
    finding = run.alarm_at("program.py", line)
    assert finding is not None and finding["class"] == "native-growth", run.told()
    assert finding["growth"]["series"] == "cuda_allocated", run.told()
    assert finding["growth"]["bytes_per_epoch"] == pytest.approx(10 * MB, rel=1e-6), run.told()


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"recorded": True}, []),
        ({"blocks": 1_000_000}, ["state", None]),
        ({"traces": "['an event', 'another']"}, ["state"]),
    ],
    ids=["the program records", "too many blocks to look at", "the program has begun to record meanwhile"],
)
def test_records_of_the_programs_own_are_left_alone_and_long_looks_are_not_taken(run_caulk, options, asked):
    run = recording(run_caulk, **options)
    assert run.stdout == f"{asked}\n", run.told()
    many = any("blocks" in note for note in run.notes_about("gpu-lines"))
    assert many == ("blocks" in options), run.told()


DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetName(void *device, char *name, unsigned size) { snprintf(name, size, "Stand-in"); return 0; }
int nvmlDeviceGetMemoryInfo_v2(void *device, memory *info) {
    info->total = 40ull << 30; info->used = 38ull << 30; info->free = 2ull << 30;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { *celsius = 91; return 0; }
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) { rates[0] = 87; rates[1] = 5; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { *reasons = 0x40; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *found) {
    if (!found) { *count = 1; return 7; }
    /* The second device is the program's. */
    unsigned own = 0;
    FILE *told = fopen(getenv("STAND_IN_PID"), "r");
    if (told) { if (fscanf(told, "%u", &own) != 1) own = 0; fclose(told); }
    found->pid = device == (void *)2 ? own : 1; found->used = 3ull << 30; found->instance = found->compute = -1;
    *count = 1;
    return 0;
}
"""

COMPUTES = """\
import os
import sys
import time
import types

import caulk


def stats(device):
    return {"reserved_bytes": {"all": {"current": 2 << 30}}, "allocated_bytes": {"all": {"current": 1 << 30}}}


with open(os.environ["STAND_IN_PID"], "w") as told:
    told.write(str(os.getpid() + int(os.environ["STAND_IN_OFFSET"])))
cuda = types.ModuleType("torch.cuda")
cuda._initialized, cuda.device_count, cuda.memory_stats_as_nested_dict = True, lambda: 1, stats
sys.modules["torch.cuda"] = cuda
for epoch in range(6):
    time.sleep(0.5)
    caulk.epoch()
"""


def beside_a_driver(run_caulk, folder, offset):
    """A run whose process has a number that is so much larger in the driver's eyes."""
    if shutil.which("cc") is None:
        pytest.skip("no cc: Debian's gcc")
    source, library = folder / "driver.c", folder / "libnvidia-ml.so.1"
    source.write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    told = {"LD_LIBRARY_PATH": str(folder), "STAND_IN_PID": str(folder / "pid"), "STAND_IN_OFFSET": str(offset)}
    return run_caulk(COMPUTES, env=told)


def test_numbers_that_the_driver_has_from_outside_a_container_are_nobodys(run_caulk, tmp_path):
    run = beside_a_driver(run_caulk, tmp_path, offset=10_000_000)
    assert [gpu["device"] for gpu in run.report["gpus"]] == [0, 1], run.told()
    assert all(gpu["processes"] == [] for gpu in run.report["gpus"]), run.told()
    assert any("38.0 GB of 40.0 GB" in note for note in run.notes_about("gpu-device")), run.told()


def test_the_driver_is_asked_for_devices_and_the_programs_part_of_them(run_caulk, tmp_path):
    run = beside_a_driver(run_caulk, tmp_path, offset=0)
    (gpu,) = run.report["gpus"]
    assert (gpu["device"], gpu["name"], gpu["total_bytes"]) == (1, "Stand-in", 40 << 30), run.told()
    assert (gpu["peak_bytes"], gpu["hottest_celsius"], gpu["busy_percent"]) == (38 << 30, 91, 87), run.told()
    assert gpu["slowed"] == [["heat", 100]], run.told()
    (part,) = gpu["processes"]
    assert (part["peak_bytes"], part["torch_reserved_bytes"]) == (3 << 30, 2 << 30), run.told()
    (note,) = run.notes_about("gpu-device")
    assert "38.0 GB of 40.0 GB" in note and "3.00 GB" in note, run.told()
    alarms = " ".join(run.notes_about("alarm"))
    assert "GPU 1: 91 °C" in alarms and "GPU 0" not in alarms, run.told()


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
