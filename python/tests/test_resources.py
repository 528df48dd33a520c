"""What grows beside the heap: open files, threads, pages that the allocator keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import CAULK, PROGRAMS, Run, marked_line, program_environment


@pytest.mark.parametrize(
    ("name", "series", "leak_class", "kind"),
    [
        ("open_files.py", "fds", "file-handles-grow", "-loss.log`"),
        ("threads_left.py", "threads", "thread-never-ends", "run `write` ("),
    ],
)
def test_what_is_counted_is_named_at_its_line(run_caulk, name, series, leak_class, kind):
    program = PROGRAMS / name
    run: Run = run_caulk(program)
    assert run.verdict(series)["state"] == "grows", run.told()
    assert run.verdict()["state"] != "grows", run.told()
    finding = run.alarm_at(name, marked_line(program))
    assert finding is not None and finding["class"] == leak_class, run.told()
    told = " ".join(evidence["text"] for evidence in finding["evidence"])
    assert kind in told, run.told()


def test_what_is_left_open_by_number_and_idle_threads_of_a_pool_are_named_at_their_lines(run_caulk):
    program = PROGRAMS / "sockets_left.py"
    run: Run = run_caulk(program)
    for series, mark, leak_class in (
        ("fds", "# leak", "file-handles-grow"),
        ("threads", "# threads", "thread-never-ends"),
    ):
        assert run.verdict(series)["state"] == "grows", run.told()
        finding = run.alarm_at(program.name, marked_line(program, mark))
        assert finding is not None and finding["class"] == leak_class, run.told()


def test_threads_that_never_end_are_blamed_for_what_they_hold(run_caulk):
    program = PROGRAMS / "prefetch_left.py"
    run: Run = run_caulk(program)
    assert run.verdict()["state"] == "grows", run.told()
    finding = run.alarms[0]
    assert finding["class"] == "thread-never-ends", run.told()
    assert finding["sites"][0]["line"] == marked_line(program), run.told()
    # 9 batches of 2.36 MB per thread, most of which are sampled.
    assert 15 << 20 < finding["growth"]["bytes_per_epoch"] < 25 << 20, run.told()
    assert f"prefetch_left.py:{marked_line(program)}" in run.stderr, run.told()


@pytest.mark.parametrize(
    ("name", "leak_class"),
    [("loader_per_epoch.py", "loader-per-epoch"), ("pool_per_epoch.py", "orphan-process")],
)
def test_processes_that_become_more_are_named_where_they_are_made(run_caulk, name, leak_class):
    program = PROGRAMS / name
    run: Run = run_caulk(program)
    assert run.verdict("children")["state"] == "grows", run.told()
    finding = run.alarm_at(name, marked_line(program))
    assert finding is not None and finding["class"] == leak_class, run.told()
    # Pipes and threads that come with them are no matter of their own.
    assert not {"file-handles-grow", "thread-never-ends"} & {one["class"] for one in run.alarms}, run.told()


@pytest.mark.parametrize(("name", "keeper"), [("clean_fragmented.py", "malloc"), ("clean_small_gaps.py", "pymalloc")])
def test_pages_that_an_allocator_keeps_are_no_leak(run_caulk, name, keeper):
    run: Run = run_caulk(PROGRAMS / name)
    assert run.alarms == [], run.told()
    assert "the allocator keeps pages" in run.stderr, run.told()
    finding = next(one for one in run.findings if one["class"] == "allocator-fragmentation")
    assert finding["severity"] == "info" and finding["message"].startswith(f"{keeper} keeps "), run.told()


@pytest.mark.parametrize("name", ["clean_small_gaps.py", "clean_fragmented.py"])
def test_what_malloc_gives_back_is_told_where_it_was_asked(run_caulk, name):
    run: Run = run_caulk(PROGRAMS / name, options=["--trim"])
    assert run.alarms == [], run.told()
    told = [*run.notes, *(each["text"] for finding in run.findings for each in finding["evidence"])]
    assert any("`malloc_trim(0)` took resident memory from" in text for text in told), run.told()


def test_what_outlives_the_program_is_told(run_caulk):
    run: Run = run_caulk(PROGRAMS / "left_behind.py")
    left = Path("/dev/shm").glob("frames-*")
    for segment in left:
        segment.unlink()
    found = {finding["class"]: finding["evidence"][0]["text"] for finding in run.alarms}
    assert set(found) == {"orphan-process", "shared-memory-left"}, run.told()
    assert "python" in found["orphan-process"] and "/dev/shm/frames-" in found["shared-memory-left"], run.told()


def test_segments_that_nobody_unlinks_are_named_where_they_are_made(run_caulk):
    # Python's own tracker unlinks them when the program has ended: nothing is left then.
    program = PROGRAMS / "segments_closed.py"
    run: Run = run_caulk(program)
    assert run.verdict("shm")["state"] == "grows", run.told()
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["class"] == "shared-memory-left", run.told()
    growth = finding["growth"]["bytes_per_epoch"]
    assert 0.9 * 16e6 < growth < 1.1 * 16e6, growth
    assert run.findings[0] == finding, run.told()


def test_segments_that_the_reader_unlinks_are_no_leak(run_caulk):
    run: Run = run_caulk(PROGRAMS / "clean_segments.py")
    assert run.alarms == [], run.told()


MAPS_FILES = """\
import mmap
import tempfile

import caulk

MB = 1 << 20
with tempfile.TemporaryFile() as file:
    file.truncate(12 * 16 * MB)
    with mmap.mmap(file.fileno(), 0) as mapped:
        for epoch in range(12):
            for page in range(epoch * 16 * MB, (epoch + 1) * 16 * MB, mmap.PAGESIZE):
                mapped[page]
            caulk.epoch()
"""


def test_pages_of_mapped_files_are_no_leak(run_caulk):
    run: Run = run_caulk(MAPS_FILES)
    assert run.alarms == [] and run.report["outlook"]["state"] == "maps-files", run.told()
    assert "no leak, these are" in run.stderr, run.told()


WRITES_FILES = """\
import tempfile
import time

time.sleep(0.5)
with tempfile.TemporaryFile(dir=".") as file:
    for _ in range(512):
        file.write(bytes(1 << 20))
    time.sleep(1)
"""


def test_page_cache_in_the_control_group_is_told_as_that(tmp_path, control_group):
    program, report = tmp_path / "writes.py", tmp_path / "report.json"
    program.write_text(WRITES_FILES)
    line = [CAULK, "run", "--output", tmp_path / "run", "--report-json", report, "--", sys.executable, program]
    command = [*control_group(420 << 20), *map(str, line)]
    done = subprocess.run(command, cwd=tmp_path, env=program_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (note,) = (note["text"] for note in json.loads(report.read_text())["notes"] if note["code"] == "page-cache")
    assert "no leak" in note, note


FILES_IN_MEMORY = """
import shutil, tempfile, time
import caulk
folder = tempfile.mkdtemp(dir="/dev/shm")
for epoch in range(12):
    with open(f"{folder}/features{epoch}.bin", "wb") as file:
        file.write(bytes(8_000_000))
    time.sleep(0.5)
    caulk.epoch()
shutil.rmtree(folder)
"""


def test_files_in_dev_shm_that_become_more_are_told(run_caulk):
    run = run_caulk(FILES_IN_MEMORY)
    assert run.code == 0, run.told()
    assert run.notes_about("shm-files"), run.told()
