"""Processes beside the main one: workers of loaders and pools, ranks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import CAULK, PROGRAMS, Run, marked_line


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_what_a_worker_keeps_is_named_inside_the_data_set(run_caulk, context):
    program = PROGRAMS / "worker_crops.py"
    run: Run = run_caulk(program, context, "persistent")
    assert run.code == 0, run.told()
    assert run.verdict()["state"] != "grows", run.told()
    assert run.verdict(role="worker")["state"] == "grows", run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None, run.told()
    assert finding["class"] == "worker-memory-grows", run.told()
    assert finding["container"] == "self.crops", run.told()
    assert finding["process"] == {"role": "worker", "index": finding["process"]["index"], "count": 2}, run.told()


def test_the_worker_that_grows_is_looked_into_beside_one_that_does_not(run_caulk):
    program = PROGRAMS / "worker_of_two.py"
    run: Run = run_caulk(program)
    assert run.code == 0, run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "worker-memory-grows", run.told()
    assert finding["container"] == "self.read", run.told()
    assert finding["process"] == {"role": "worker", "index": 1, "count": 1}, run.told()


@pytest.mark.parametrize("workers", ["persistent", "anew"])
def test_a_leak_in_the_main_process_is_blamed_on_no_worker(run_caulk, workers):
    program = PROGRAMS / "main_beside_workers.py"
    run: Run = run_caulk(program, workers)
    assert run.code == 0, run.told()
    assert run.verdict()["state"] == "grows", run.told()
    workers = [verdict for verdict in run.report["verdicts"] if verdict["process"]["role"] == "worker"]
    assert workers and all(verdict["state"] != "grows" for verdict in workers), run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None, run.told()
    assert (finding["container"], finding["process"]["role"]) == ("self.seen", "main"), run.told()
    assert all(alarm["process"]["role"] == "main" for alarm in run.alarms), run.told()


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_native_memory_of_a_worker_is_named_where_it_is_allocated(run_caulk, context):
    program = PROGRAMS / "worker_buffers.py"
    run: Run = run_caulk(program, context)
    assert run.code == 0, run.told()
    assert run.verdict()["state"] != "grows", run.told()
    assert run.verdict(role="worker")["state"] == "grows", run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "native-growth", run.told()
    assert finding["process"] == {"role": "worker", "index": finding["process"]["index"], "count": 2}, run.told()
    command = [CAULK, "report", run.folder / "run", f"--lines={program}", "--format", "json"]
    lines = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["lines"]
    found = [line for line in lines if line["line"] == marked_line(program)]
    assert [line["process"]["role"] for line in found] == ["worker", "worker"], lines
    # The last boundary is at the beginning of the last epoch, and each of the two workers loads half of the items.
    exact = 7 * 48 * 150_000
    assert all(abs(line["live"]["bytes"] - exact) < 4 * line["live"]["deviation"] + 0.1 * exact for line in found), (
        found
    )


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_what_a_worker_keeps_for_one_epoch_is_no_leak(run_caulk, context):
    run: Run = run_caulk(PROGRAMS / "worker_crops.py", context, "per-epoch")
    assert run.code == 0, run.told()
    assert run.alarms == [], run.told()
    assert not any(verdict["state"] == "grows" for verdict in run.report["verdicts"]), run.told()


def test_an_index_that_workers_copy_as_they_read_it_is_named_where_it_is_made(run_caulk):
    program = PROGRAMS / "worker_index.py"
    run: Run = run_caulk(program, "300000")
    finding = run.alarm_at(program.name, marked_line(program, "# made"))
    assert finding is not None, run.told()
    assert (finding["class"], finding["severity"]) == ("worker-copy-on-write", "warning"), run.told()
    assert finding["container"] == "self.rows", run.told()
    assert not any(verdict["series"] == "in_use" and verdict["state"] == "grows" for verdict in run.report["verdicts"])


def test_copying_that_ends_is_left_alone(run_caulk):
    run: Run = run_caulk(PROGRAMS / "worker_index.py", "2000")
    assert run.alarms == [], run.told()


@pytest.mark.parametrize("kind", ["pool", "executor"])
def test_what_a_process_of_a_pool_keeps_is_named(run_caulk, kind):
    program = PROGRAMS / "pool_keeps.py"
    run: Run = run_caulk(program, kind)
    assert run.code == 0, run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "worker-memory-grows", run.told()
    assert finding["process"]["role"] == "worker", run.told()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_what_a_process_keeps_of_what_comes_through_its_pipe_is_named(run_caulk, context):
    program = PROGRAMS / "served_list.py"
    run: Run = run_caulk(program, "pipe", context)
    assert run.code == 0, run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "worker-memory-grows", run.told()
    assert (finding["container"], finding["process"]["role"]) == ("kept", "worker"), run.told()


@pytest.mark.parametrize("way", ["manager", "clients"])
def test_what_a_manager_keeps_is_found_in_its_process(run_caulk, way):
    run: Run = run_caulk(PROGRAMS / "served_list.py", way, "fork")
    assert run.code == 0, run.told()
    assert run.verdict()["state"] != "grows" and run.verdict(role="worker")["state"] == "grows", run.told()
    (alarm,) = run.alarms
    assert alarm["process"]["role"] == "worker" and "id_to_obj" in alarm["holder"], run.told()


def test_a_pool_that_asks_a_manager_amid_its_work_is_read_between_two_pieces(run_caulk):
    program = PROGRAMS / "pool_with_manager.py"
    run: Run = run_caulk(program)
    assert run.code == 0 and run.verdict()["state"] != "grows", run.told()
    assert run.alarm_at(program.name, marked_line(program)) is not None, run.told()
    assert all(alarm["process"]["role"] == "worker" and alarm["container"] == "KEPT" for alarm in run.alarms), (
        run.told()
    )


def test_a_process_that_trains_after_it_was_sent_its_settings_is_seen_as_one_that_trains(run_caulk):
    program = PROGRAMS / "child_trains.py"
    run: Run = run_caulk(program)
    assert run.code == 0 and run.verdict()["state"] != "grows", run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "graph-retained", run.told()


def test_processes_that_came_and_went_take_no_profile_from_a_pool(run_caulk):
    program = PROGRAMS / "pool_after_forks.py"
    run: Run = run_caulk(program, "160")
    assert run.code == 0, run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "native-growth", run.told()
    assert finding["process"]["role"] == "worker", run.told()
    assert not run.notes_about("heap-profile"), run.told()


def reported(run: Run, *options: object) -> str:
    """What `caulk report` prints of a run."""
    command = [CAULK, "report", run.folder / "run", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def heap_by_line(run: Run, program: Path, mark: str) -> tuple[list[dict], float]:
    """What the lines view has of the marked line, and the live bytes of everything; all views have to agree."""
    number = marked_line(program, mark)
    rows = json.loads(reported(run, "--lines", "--format", "json"))["lines"]
    shown = [row for row in rows if row["line"] == number and row["file"].endswith(program.name)]
    for view in (reported(run, "--lines"), reported(run, f"--lines={program}")):
        lines = [line for line in view.splitlines() if re.match(rf"\s*\w.* {number} │ ", line)]
        assert len(lines) == len(shown), view
        assert sum("ended" in line for line in lines) == sum(row["ended"] for row in shown), view
    page = run.folder / "heap.html"
    reported(run, "--flame", page)
    live = re.search(r'data-live="(\d+)"', page.read_text())
    assert live is not None
    total = float(live[1])
    # What no line of the program's has is in the flame graph alone.
    assert sum(row["live"]["bytes"] for row in rows) <= total + 1
    return shown, total


def is_about(amount: dict, expected: float) -> bool:
    """Exact for the large block of a line; the sample of a small object beside it stands for half a megabyte, and says so."""
    return abs(amount["bytes"] - expected) <= 0.01 * expected + 2 * amount["deviation"]


def test_workers_that_are_made_anew_every_epoch_are_told_once_and_hold_nothing_in_the_end(run_caulk):
    program = PROGRAMS / "pools_closed.py"
    run: Run = run_caulk(program)
    assert run.code == 0 and run.alarms == [], run.told()
    rows, live = heap_by_line(run, program, "# loaded")
    numbers = [row["process"]["index"] for row in rows]
    assert numbers and len(set(numbers)) == len(numbers), rows
    assert all(row["ended"] and row["live"]["bytes"] == 0 for row in rows), rows
    assert all(is_about(row["peak"], 20e6) for row in rows), rows
    # The main process alone is left: 30 MB, and what the interpreter has.
    assert 30e6 <= live < 45e6, live


def test_workers_that_were_killed_with_the_program_hold_what_they_held(run_caulk):
    program = PROGRAMS / "pools_closed.py"
    run: Run = run_caulk(program, "killed")
    assert run.code == 137, run.told()
    rows, live = heap_by_line(run, program, "# loaded")
    held = [row["live"] for row in rows if not row["ended"]]
    assert len(held) == 2 and all(is_about(live, 20e6) for live in held), rows
    assert 70e6 <= live < 95e6, live


def ranks(run_caulk, *leaking: str) -> tuple[Run, str]:
    """Two ranks, and what the report says of both."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run: Run = run_caulk([*launcher, PROGRAMS / "rank_leaks.py", *leaking])
    assert run.code == 0, run.told()
    (note,) = run.notes_about("ranks")
    return run, note


def test_the_rank_that_grows_is_named(run_caulk):
    run, note = ranks(run_caulk, "1")
    assert "rank 1 stands out: memory in use grows by" in note, run.told()
    finding = run.alarm_at("rank_leaks.py", marked_line(PROGRAMS / "rank_leaks.py"))
    assert finding is not None, run.told()
    assert finding["process"] == {"role": "rank", "index": 1, "count": 1}, run.told()


@pytest.mark.parametrize("kind", ["group", "alone"])
def test_ranks_that_the_program_spawns_have_their_number(run_caulk, kind):
    program = PROGRAMS / "rank_spawned.py"
    run: Run = run_caulk(program, kind, "2")
    assert run.code == 0, run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None, run.told()
    assert finding["process"] == {"role": "rank", "index": 2, "count": 1}, run.told()
    (note,) = run.notes_about("ranks")
    assert "rank 2 stands out" in note, run.told()


def test_ranks_that_grow_alike_share_a_finding(run_caulk):
    run, note = ranks(run_caulk, "0", "1")
    assert note.startswith("2 ranks, alike: memory in use moves by"), run.told()
    finding = run.alarm_at("rank_leaks.py", marked_line(PROGRAMS / "rank_leaks.py"))
    assert finding is not None and finding["process"]["count"] == 2, run.told()


def test_ranks_that_do_not_grow_are_alike(run_caulk):
    run, note = ranks(run_caulk)
    assert note.startswith("2 ranks, alike: memory in use moves by"), run.told()
    assert run.alarms == [], run.told()
