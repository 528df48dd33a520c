"""`caulk selftest` with the interpreter of these tests, and with one that has no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from harness import CAULK, program_environment

WANTED = ("agent", "trace", "trace-and-heap", "heap-sampler", "clean", "clean-and-heap")


def states(python: str | Path, output: Path) -> dict[str, str]:
    """How each check came out, where everything works."""
    command = [str(CAULK), "selftest", "--python", str(python), "--format", "json", "--output", str(output)]
    ended = subprocess.run(command, env=program_environment(), capture_output=True, text=True, timeout=600)
    answer = json.loads(ended.stdout)
    assert ended.returncode == 0 and answer["works"], (ended.stdout, ended.stderr)
    return {check["name"]: check["state"] for check in answer["checks"]}


def test_everything_works_here_and_recordings_are_kept(tmp_path):
    found = states(sys.executable, tmp_path)
    assert [found[name] for name in (*WANTED, "torch-hooks")] == ["good"] * (len(WANTED) + 1)
    assert {folder.name for folder in tmp_path.iterdir() if folder.is_dir()} >= {"leak", "clean-no-heap"}


def test_without_torch_the_rest_works(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    found = states(tmp_path / "env" / "bin" / "python", tmp_path / "out")
    assert [found[name] for name in WANTED] == ["good"] * len(WANTED)
    assert found["torch-hooks"] == "unknown"
