"""The worker `caulk-clip` and the command `caulk clips` as tests call them."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from harness import CAULK, program_environment

CLIPS = CAULK.with_name("caulk-clips")
WORKER = CAULK.with_name("caulk-clip")
NEEDED = pytest.mark.skipif(not WORKER.exists(), reason="caulk-clips is not installed")


class Worker:
    """The worker as caulk talks to it."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([WORKER], stdin=pipe, stdout=pipe)

    def close(self) -> int:
        with self.process:
            pass
        return self.process.returncode

    def decode(self, path: Path, frames: list[int], size: int | None = None, **more: Any) -> dict:
        """The answer, with the pictures under `images`."""
        shape = {"width": size, "height": size} if size else None
        ask = {"path": str(path), "selection": {"explicit": frames}, "frames": 1, "size": shape, **more}
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"decode": ask}).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if pictures := answer.get("pictures"):
            data = np.frombuffer(self.process.stdout.read(pictures["bytes"]), np.uint8)
            shape = pictures["size"]
            answer["images"] = data.reshape(len(frames), shape["height"], shape["width"], 3)
        return answer


def check(worker: Worker, path: Path, count: int | None = None, turn: int = 0, whole: bool = False) -> None:
    """Frames by number, alone and together, are those of two full decodes: PyAV's by what they show, our own by the byte."""
    expected = videos.full_decode(path)
    assert count is None or len(expected) == count
    everything = worker.decode(path, list(range(len(expected))), sequential=True)
    assert everything["pictures"]["total"] == len(expected), everything
    draw = random.Random(str(path.name))
    some = [[frame] for frame in draw.sample(range(len(expected)), min(12, len(expected)))]
    some += [draw.choices(range(len(expected)), k=6) for _ in range(4)] + [[len(expected) - 1, 0]]
    for frames in some:
        answer = worker.decode(path, frames)
        assert whole or "sequential" not in answer, answer["sequential"]
        shown = [videos.number_of(np.rot90(image, turn)) for image in answer["images"]]
        assert shown == [expected[frame] for frame in frames]
        for frame, image in zip(frames, answer["images"]):
            assert np.array_equal(image, everything["images"][frame]), (path.name, frame)


def peak_bytes(worker: Worker) -> int:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def caulk(*words: str | Path, cwd: Path, code: int = 0, **variables: str) -> str:
    line = [str(word) for word in (CLIPS, *words)]
    done = subprocess.run(
        line, cwd=cwd, env=program_environment(**variables), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


OPTIONS = ("--frames", "4", "--size", "48", "--augment", "2")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a prepared set; which locks there were says nothing."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
