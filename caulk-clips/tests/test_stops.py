"""What stops `caulk clips`: signals, dead workers, folders and disks that take nothing. Nothing is left running, nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import videos
from clipwork import CLIPS, NEEDED, WORKER, caulk, contents
from harness import program_environment

pytestmark = NEEDED
OPTIONS = ("--frames", "4", "--size", "48", "--jobs", "1")
LINE = [str(CLIPS), "prepare", "videos.csv", "--out", "out", *OPTIONS]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Three videos, the middle one of which, opened, waits for somebody who writes to it."""
    for name in ("a.mp4", "c.mp4"):
        videos.encode(tmp_path / name, 20, size=(160, 96))
    os.mkfifo(tmp_path / "b.mp4")
    (tmp_path / "videos.csv").write_text("video_path\na.mp4\nb.mp4\nc.mp4\n")
    return tmp_path


def until(true: Callable[[], object]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it does not come")


def workers(parent: int) -> list[int]:
    """Processes of a parent that decode."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (folder / "comm").read_text(), (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if name == "caulk-clip\n" and int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def heeds_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stuck(place: Path) -> tuple[subprocess.Popen[str], int]:
    """A run whose worker waits in the second video, and the worker."""
    environment = program_environment()
    # A shell starts what it runs in the background with Ctrl-C ignored, and so would this.
    run = subprocess.Popen(
        LINE, cwd=place, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heeds_interrupts
    )
    log = place / "out/clips.jsonl"
    until(lambda: log.exists() and log.read_bytes().count(b"\n") == 2 and workers(run.pid))
    time.sleep(0.5)
    return run, workers(run.pid)[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_and_loses_nothing(place: Path, number: signal.Signals) -> None:
    run, worker = stuck(place)
    run.send_signal(number)
    _, told = run.communicate(timeout=60)
    assert run.returncode == -number and "panicked" not in told
    until(lambda: ended(worker))
    os.unlink(place / "b.mp4")
    videos.encode(place / "b.mp4", 20, size=(160, 96))
    assert "2 clips of 2 videos in `out`; 1 videos were done before" in caulk(*LINE[1:], cwd=place)
    caulk(*[word if word != "out" else "other" for word in LINE[1:]], cwd=place)
    assert contents(place / "out") == contents(place / "other")


def test_a_worker_that_is_killed_is_replaced(place: Path) -> None:
    run, worker = stuck(place)
    os.kill(worker, signal.SIGKILL)
    assert run.wait(timeout=60) == 1
    run.communicate()
    failed = [json.loads(line) for line in (place / "out/failed.jsonl").read_text().splitlines()]
    assert failed == [{"video": "b.mp4", "reason": "the decoder died (signal: 9 (SIGKILL))"}]
    assert (place / "out/metadata.csv").read_text().count("\n") == 3


def test_a_worker_ends_with_the_python_that_asked_it(place: Path) -> None:
    line = [sys.executable, "-c", "import caulk_clips; caulk_clips.decode('b.mp4', [0])"]
    python = subprocess.Popen(line, cwd=place, env=program_environment(CAULK_CLIP=str(WORKER)))
    until(lambda: workers(python.pid))
    (worker,) = workers(python.pid)
    python.kill()
    python.wait()
    until(lambda: ended(worker))


def test_a_folder_that_cannot_be_made_is_named(place: Path) -> None:
    os.unlink(place / "b.mp4")
    (place / "file").write_text("")
    for out in ("file", "file/out", "/proc/out"):
        told = caulk("prepare", "videos.csv", "--out", out, *OPTIONS, cwd=place, code=125)
        assert f"failed to make `{out}`" in told and told.count("\n") < 5, told


def test_a_disk_that_is_full_is_named_and_what_was_made_stays(place: Path) -> None:
    (place / "videos.csv").write_text("video_path\na.mp4\n")
    caulk(*LINE[1:], cwd=place)
    (place / "videos.csv").write_text("video_path\na.mp4\nc.mp4\n")

    def limit() -> None:
        # As a full disk does, writing fails: the system's signal is ignored.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    run = subprocess.run(
        LINE, cwd=place, env=program_environment(), capture_output=True, text=True, preexec_fn=limit, check=False
    )
    assert run.returncode == 125, run.stderr
    assert "failed to write `out/clips/" in run.stderr and "File too large" in run.stderr
    assert not list((place / "out").rglob("*.partial"))
    assert [path.name[0] for path in (place / "out").rglob("*.npy")] == ["a"]
    assert "1 clips of 1 videos in `out`; 1 videos were done before" in caulk(*LINE[1:], cwd=place)


@pytest.mark.parametrize(
    "words, told",
    [
        (("--no-original",), "the following required arguments were not provided"),
        (("--no-original", "--augment", "0"), "--no-original and no augmented clips leave none"),
        (("--select", "0,5,9", "--frames", "6"), "--select names 3 frames, --frames says 6"),
        (("--memory", "1MB"), "1.00 MB is too little for a decoder\nhint: it needs 96.0 MB"),
        (("--memory", "200MB", "--jobs", "4"), "200 MB for 4 decoders is too little"),
    ],
)
@pytest.mark.parametrize("command", [("prepare", "--out", "out"), ("estimate",)])
def test_what_contradicts_itself_is_refused(
    place: Path, command: tuple[str, ...], words: tuple[str, ...], told: str
) -> None:
    more = [] if "--jobs" in words else ["--jobs", "1"]
    code = 2 if told.startswith("the following") else 125
    said = caulk(command[0], "videos.csv", *command[1:], *words, *more, cwd=place, code=code)
    assert told in said and not (place / "out").exists()


def test_too_little_memory_for_one_video_is_refused(place: Path) -> None:
    words = ("a.mp4", "--select", "0,5", "--output", "a.npy", "--memory")
    assert "1.00 MB is too little for a decoder\nhint: it needs 96.0 MB" in caulk(
        "decode", *words, "1MB", cwd=place, code=125
    )
    assert caulk("decode", *words, "96MB", cwd=place) == "frames 0,5 of 20\n"
