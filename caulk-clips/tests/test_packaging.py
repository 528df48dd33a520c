"""The wheel has command, worker, package and what FFmpeg's licence asks for; `caulk clips` and `caulk.clips` lead to it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from clipwork import CLIPS, NEEDED, WORKER
from harness import CAULK, ROOT, program_environment

FFMPEG = ROOT / ".cache/ffmpeg"
VIDEO = Path(__file__).parent / "data/tiny.mp4"
pytestmark = NEEDED


def run(*line: str | Path) -> str:
    done = subprocess.run(line, env=program_environment(), capture_output=True, text=True, check=True)
    return done.stdout


def test_command_and_package_have_one_version() -> None:
    assert run(CLIPS, "--version").split() == ["caulk-clips", metadata.version("caulk-clips")]


def test_the_wheel_has_command_worker_package_and_licences() -> None:
    files = {str(path) for path in metadata.files("caulk-clips") or []}
    for name in ("bin/caulk-clips", "bin/caulk-clip"):
        assert any(path.endswith(name) for path in files), files
    assert {"caulk_clips/__init__.py", "caulk_clips/_fetch.py", "caulk_clips/py.typed"} <= files
    licences = {"COPYING.LGPLv2.1", "COPYING.dav1d", "BUILD.md", "caulk-clip.o", "relink.sh"}
    assert {f"caulk_clips/licenses/ffmpeg/{name}" for name in licences} <= files
    assert not any("tests/" in path or "/test_" in path for path in files), files
    licence = metadata.metadata("caulk-clips")["License-Expression"]
    assert "LGPL-2.1-or-later" in licence and "BSD-2-Clause" in licence


@pytest.mark.skipif(not (FFMPEG / "lib/libavcodec.a").exists() or not shutil.which("cc"), reason="no FFmpeg to link")
def test_the_worker_can_be_linked_with_another_ffmpeg(tmp_path: Path) -> None:
    (script,) = [file.locate() for file in metadata.files("caulk-clips") or [] if file.name == "relink.sh"]
    said = subprocess.run(
        ["sh", script, FFMPEG, "caulk-clip"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("caulk-clip ")
    ask = {"path": str(VIDEO), "selection": {"explicit": [2, 0]}, "frames": 1, "size": {"width": 32, "height": 32}}
    question = json.dumps({"decode": ask}).encode() + b"\n"
    answers = [
        subprocess.run([worker], input=question, capture_output=True, check=True).stdout
        for worker in (tmp_path / "caulk-clip", WORKER)
    ]
    assert answers[0] == answers[1] and len(answers[0]) > 2 * 32 * 32 * 3


def test_caulk_clips_runs_it(tmp_path: Path) -> None:
    assert run(CAULK, "clips", "--help") == run(CLIPS, "--help")
    out = tmp_path / "clip.npy"
    printed = run(CAULK, "clips", "decode", VIDEO, "--frames", "2", "--size", "32", "--output", out)
    assert printed.startswith("frames ") and out.stat().st_size == 128 + 2 * 32 * 32 * 3
    refused = subprocess.run([CAULK, "clips", "decode"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "--output" in refused.stderr


def test_caulk_dot_clips_is_the_same_package() -> None:
    text = (
        "import caulk.clips, caulk_clips; from caulk.clips import decode\n"
        "assert caulk.clips.decode is caulk_clips.decode is decode\n"
        "assert caulk.clips.DecodeError is caulk_clips.DecodeError\n"
        "assert set(caulk_clips.__all__) == set(dir(caulk.clips))\n"
        f"print(caulk.clips.decode({str(VIDEO)!r}, [0], 16).shape)"
    )
    assert run(sys.executable, "-c", text) == "(1, 16, 16, 3)\n"
