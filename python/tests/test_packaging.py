"""The wheel holds all there is: command, agent, package; and it stays out of the way until it is asked for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from harness import CAULK, ROOT, program_environment


def python(*words: str, cwd: Path | None = None) -> str:
    command = [sys.executable, *words]
    environment = program_environment()
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_command_and_package_have_one_version():
    said = subprocess.run([CAULK, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["caulk", metadata.version("caulk")]


def test_the_wheel_holds_command_agent_and_injected_folder():
    files = {str(path) for path in metadata.files("caulk") or []}
    assert any(path.endswith("bin/caulk") for path in files), files
    if any(path.endswith("bin/caulk-clip") for path in files):
        licences = {"COPYING.LGPLv2.1", "COPYING.dav1d", "BUILD.md", "caulk-clip.o", "relink.sh"}
        assert {f"caulk/licenses/ffmpeg/{name}" for name in licences} <= files
    assert {"caulk/__init__.py", "caulk/_bootstrap.py", "caulk/_inject/sitecustomize.py"} <= files
    agent = {path for path in files if path.startswith("caulk/_agent")}
    assert agent == {"caulk/_agent.abi3.so", "caulk/_agent.pyi"}
    assert not any("tests/" in path or "/test_" in path for path in files), files


FFMPEG = ROOT / ".cache/ffmpeg"


@pytest.mark.skipif(not (FFMPEG / "lib/libavcodec.a").exists() or not shutil.which("cc"), reason="no FFmpeg to link")
def test_the_worker_can_be_linked_with_another_ffmpeg(tmp_path):
    (script,) = [file.locate() for file in metadata.files("caulk") or [] if file.name == "relink.sh"]
    said = subprocess.run(
        ["sh", script, FFMPEG, "caulk-clip"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("caulk-clip ")
    video = Path(__file__).parent / "data/tiny.mp4"
    ask = {"path": str(video), "selection": {"explicit": [2, 0]}, "frames": 1, "size": {"width": 32, "height": 32}}
    question = json.dumps({"decode": ask}).encode() + b"\n"
    answers = [
        subprocess.run([worker], input=question, capture_output=True, check=True).stdout
        for worker in (tmp_path / "caulk-clip", CAULK.with_name("caulk-clip"))
    ]
    assert answers[0] == answers[1] and len(answers[0]) > 2 * 32 * 32 * 3


def test_one_wheel_serves_every_python():
    wheel = metadata.distribution("caulk").read_text("WHEEL") or ""
    tags = [line.split(": ")[1] for line in wheel.splitlines() if line.startswith("Tag: ")]
    assert tags and all(tag.startswith("cp310-abi3-") for tag in tags), wheel


def test_importing_caulk_imports_nothing_heavy(tmp_path):
    heavy = python("-c", "import caulk, sys; print(*{'torch', 'numpy', 'matplotlib'} & set(sys.modules))", cwd=tmp_path)
    assert heavy.strip() == ""


def test_without_caulk_run_the_api_does_nothing(tmp_path):
    text = "import caulk\nwith caulk.phase('validation'): caulk.step()\ncaulk.epoch()\nprint('done')"
    assert python("-W", "error", "-c", text, cwd=tmp_path) == "done\n"
