"""The wheel holds all there is: command, agent, package; and it stays out of the way until it is asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from harness import CAULK, program_environment


def python(*words: str, cwd: Path | None = None) -> str:
    command = [sys.executable, *words]
    environment = program_environment()
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_command_and_package_have_one_version():
    said = subprocess.run([CAULK, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[0].split() == ["caulk", metadata.version("caulk")]


def test_the_wheel_holds_command_agent_and_injected_folder():
    files = {str(path) for path in metadata.files("caulk") or []}
    assert any(path.endswith("bin/caulk") for path in files), files
    assert {"caulk/__init__.py", "caulk/_bootstrap.py", "caulk/_inject/sitecustomize.py"} <= files
    share = {"man/man1/caulk-run.1", "bash-completion/completions/caulk", "zsh/site-functions/_caulk"}
    assert all(any(path.endswith(f"share/{name}") for path in files) for name in share), files
    agent = {path for path in files if path.startswith("caulk/_agent")}
    assert agent == {"caulk/_agent.abi3.so", "caulk/_agent.pyi"}
    assert not any("tests/" in path or "/test_" in path for path in files), files


@pytest.fixture
def without_clips(tmp_path):
    """An environment for programs that do not find caulk-clips: its package is hidden, and so is every `bin`."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "caulk_clips.py").write_text("raise ModuleNotFoundError('no caulk_clips', name='caulk_clips')")
    return program_environment(PYTHONPATH=str(hidden), PATH="/nowhere")


INSTALL = "hint: install it: `pip install /path/to/caulk/caulk-clips`, or `cargo xtask develop --clips`"


def test_clips_that_are_not_installed_say_how_to_install_them(without_clips, tmp_path):
    alone = tmp_path / "caulk"
    shutil.copy(CAULK, alone)
    for words in (["--help"], ["decode", "a.mp4", "--output", "a.npy"], []):
        done = subprocess.run([alone, "clips", *words], env=without_clips, capture_output=True, text=True, check=False)
        assert done.returncode == 127, done
        assert done.stdout == "" and "`caulk-clips` is not installed" in done.stderr and INSTALL in done.stderr
    text = "try:\n    import caulk.clips\nexcept ImportError as error:\n    raise SystemExit(str(error))"
    done = subprocess.run([sys.executable, "-c", text], env=without_clips, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert INSTALL in done.stderr


def test_the_wheel_is_free_of_ffmpeg():
    files = [path for path in metadata.files("caulk") or [] if not str(path).endswith(".pyc")]
    assert not [path for path in files if "ffmpeg" in str(path).lower() or path.name == "caulk-clip"]
    assert metadata.metadata("caulk")["License-Expression"] == "MIT OR Apache-2.0"


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
