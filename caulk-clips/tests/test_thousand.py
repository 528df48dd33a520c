"""A large set, killed at random and gone on with: memory is flat by caulk's own recording, and the end is as of one run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import videos
from clipwork import CLIPS, NEEDED, contents
from harness import CAULK, program_environment

pytestmark = NEEDED
OPTIONS = ("--frames", "4", "--size", "48", "--augment", "1", "--jobs", "2")
# Readings, four a second, from which on memory's verdict is due.
ENOUGH = 16


@pytest.fixture(params=[pytest.param(60, id="60"), pytest.param(1000, id="1000", marks=pytest.mark.full)])
def data_set(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """So many videos, by so many names; some hold the same."""
    rows = ["video_path,label"]
    different = 25 if request.param < 1000 else 250
    for number in range(request.param):
        name = f"{number}.mp4"
        if number < different:
            videos.encode(tmp_path / name, 20 + number, size=(160, 96))
        else:
            os.link(tmp_path / f"{number % different}.mp4", tmp_path / name)
        rows.append(f"{name},{number % 2}")
    (tmp_path / "videos.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def prepare(out: str) -> list[str | Path]:
    return [CLIPS, "prepare", "videos.csv", "--out", out, *OPTIONS]


def logged(folder: Path) -> int:
    log = folder / "clips.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def test_memory_is_flat_and_five_kills_change_nothing(data_set: Path) -> None:
    environment = program_environment()
    recorded = [CAULK, "run", "--output", "recording", "--report-json", "report.json", "--", *prepare("once")]
    subprocess.run(recorded, cwd=data_set, env=environment, check=True, capture_output=True)
    report = json.loads((data_set / "report.json").read_text())
    assert not report["leak_found"], report["verdicts"]
    count = len((data_set / "videos.csv").read_text().splitlines()) - 1
    trees = [verdict for verdict in report["verdicts"] if verdict["series"] == "rss"]
    # A run of a second or two has too few readings to say more, or anything.
    states = {"flat", "plateaus", "sawtooth"}
    assert all(tree["state"] in states or tree["boundaries"] < ENOUGH for tree in trees), trees
    assert all(tree["process"]["role"] == "tree" and tree["last"] < 200_000_000 for tree in trees)
    assert len(trees) == 1 or (count < 1000 and not trees)

    draw = random.Random(8)
    for part in range(5):
        run = subprocess.Popen(prepare("killed"), cwd=data_set, env=environment, stderr=subprocess.DEVNULL)
        wanted = (part + draw.random()) * count / 5
        while logged(data_set / "killed") < wanted and run.poll() is None:
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        run.wait()
    subprocess.run(prepare("killed"), cwd=data_set, env=environment, check=True, capture_output=True)
    assert contents(data_set / "killed") == contents(data_set / "once")
    assert len(contents(data_set / "once")) == 2 * count + 4
