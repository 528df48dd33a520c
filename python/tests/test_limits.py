"""What a program runs into first: limits of each process come before the machine's memory where they are nearer."""

from __future__ import annotations

GROWS = """\
import resource, time
import caulk

resource.setrlimit(resource.{name}, (4 << 30, 4 << 30))
kept = []
for _ in range(12):
    kept.append(b"x" * (8 << 20))
    time.sleep(0.3)
    caulk.epoch()
"""

OPENS = """\
import resource, time
import caulk

resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))
logs = []
for _ in range(12):
    logs += [open(__file__), open(__file__)]
    time.sleep(0.3)
    caulk.epoch()
"""

REFUSED = """\
import resource, time
import torch

resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
time.sleep(3)
torch.ones(3 << 30)
"""


def test_memory_runs_into_the_limit_of_the_address_space(run_caulk):
    run = run_caulk(GROWS.format(name="RLIMIT_AS"))
    verdict = run.verdict()
    assert verdict["limit"] == {"kind": "rlimit_as", "bytes": 4 << 30}, run.told()
    left_mb = verdict["oom_in_s"][0] / verdict["unit_seconds"] * 8
    assert 2000 < left_mb < 4096, run.told()
    forecast = "it would have reached the limit of a process's address space (`ulimit -v`, 4.00 GB)"
    assert forecast in " ".join(run.stderr.split()), run.told()


def test_memory_runs_into_the_limit_of_data(run_caulk):
    run = run_caulk(GROWS.format(name="RLIMIT_DATA"))
    assert run.verdict()["limit"] == {"kind": "rlimit_data", "bytes": 4 << 30}, run.told()


def test_open_files_lead_where_their_limit_is_reached_first(run_caulk):
    run = run_caulk(OPENS)
    verdict = run.verdict("fds")
    assert verdict["limit"] == {"kind": "fds", "bytes": 120}, run.told()
    assert verdict["oom_in_s"] is not None, run.told()
    assert run.report["outlook"]["sentence"].startswith("The number of open files grows by 2 per epoch"), run.told()
    assert "the limit of 120 open files (`ulimit -n`)" in " ".join(run.stderr.split()), run.told()
    assert run.alarms[0]["class"] == "file-handles-grow", run.told()


def test_a_program_that_is_refused_memory_has_run_out_of_it(run_caulk):
    run = run_caulk(REFUSED)
    assert run.report["run"]["ending"] == {
        "kind": "memory-error",
        "type": "RuntimeError",
        "asked_bytes": 12 << 30,
        "limit": {"kind": "rlimit_as", "bytes": 8 << 30},
    }, run.told()
    first = " ".join(run.stderr.split())
    assert "as it asked for 12.0 GB, at the limit of a process's address space (`ulimit -v`, 8.00 GB)" in first
