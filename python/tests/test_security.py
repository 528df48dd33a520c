"""The promises of docs/security.md that need a whole run: no network, no shell, nothing for other users or the terminal."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import CAULK, ROOT, program_environment

PROGRAM = """\
import caulk

kept = {"\\x1b]0;hit\\x07": [], "\\x1b[2J": []}


def gather(name):
    # \x1b[31mA comment with control characters.\x1b[0m
    kept[name].append(bytearray(6 << 20))


for epoch in range(8):
    gather("\\x1b]0;hit\\x07")
    caulk.epoch()
"""
HOSTILE = "a\x1b]0;hit\x07\r::error::\x1b[2J.py"

strace = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace: system calls are not seen")
root = pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="only root becomes another user, by setpriv"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def caulk(folder: Path, *words: str, before: tuple[str, ...] = (), **env: str) -> subprocess.CompletedProcess[str]:
    command = [*before, str(CAULK), *words]
    path = f"{CAULK.parent}{os.pathsep}{os.environ['PATH']}"
    environment = program_environment(HOME=str(folder), PATH=path, **env)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@strace
def test_nothing_is_asked_or_answered_over_a_network_and_no_shell_is_started(project):
    python = str(CAULK.parent / "python")
    commands = (
        ("run", "--report", "report.html", "--format", "markdown", "--", python, "train.py"),
        ("run", "--guard", "--budget", "20GB", "--resume-cmd", f"{python} train.py", "--", python, "train.py"),
        ("verify", "--junit", "verify.xml", "--", python, "train.py"),
        ("report", "--html", "leak.html"),
        ("check", "--format", "sarif", "train.py"),
        ("plan", "--preset", "vit_gru", "--gpu", "T4", "--ram", "16GB"),
        ("doctor", "--logs", "train.py"),
        ("clean", "--root", "."),
    )
    for words in commands:
        log = project / "calls"
        trace = ("strace", "-f", "-qq", "-s", "200", "-e", "trace=socket,connect,bind,listen,execve", "-o", str(log))
        done = caulk(project, *words, before=trace)
        assert "panicked" not in done.stderr and done.returncode in (0, 1), (words, done.stderr)
        calls = log.read_text()
        assert "execve(" in calls, (words, calls)
        sockets = re.findall(r"socket\((AF_\w+|PF_\w+)", calls)
        assert set(sockets) <= {"AF_UNIX"}, (words, sorted(set(sockets)))
        shells = re.findall(r'execve\("[^"]*/(?:ba|da|z)?sh".*= 0$', calls, re.MULTILINE)
        assert shells == [], words


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare: there is no namespace without a network")
def test_a_run_needs_no_network(project):
    alone = ("unshare", "--user", "--map-root-user", "--net")
    probe = subprocess.run([*alone, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no namespace here: {probe.stderr.strip()}")
    done = caulk(project, "run", "--", str(CAULK.parent / "python"), "train.py", before=alone)
    assert done.returncode == 0 and "Memory grows by" in done.stderr, done.stderr


@root
def test_another_user_sees_nothing_of_a_recording(project):
    # Everybody may enter every folder above the recording: what is closed is closed by caulk.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o777)
        program = place / "train.py"
        program.write_text(PROGRAM)
        run = f'umask 0; exec "{CAULK}" run -- "{CAULK.parent / "python"}" train.py'
        done = subprocess.run(
            ["sh", "-c", run], cwd=place, env=program_environment(HOME=str(place)), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        recorded = [path for path in (place / ".caulk" / "runs").rglob("*")]
        assert sum(path.is_file() for path in recorded) > 3, recorded
        modes = {oct(stat.S_IMODE(path.stat().st_mode)) for path in recorded}
        assert modes <= {"0o600", "0o700"}, modes
        other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        for path in recorded:
            read = ["ls", str(path)] if path.is_dir() else ["cat", str(path)]
            assert subprocess.run([*other, *read], capture_output=True, check=False).returncode != 0, path


def steering(text: str) -> list[str]:
    """Characters that steer a terminal, and commands of a runner; but for colours and caulk's own annotations."""
    rest = re.sub(r"\x1b\[[0-9;]*m|^::(?:error|warning|notice) title=caulk", "", text, flags=re.MULTILINE)
    return sorted(set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|^::", rest, re.MULTILINE)))


def test_names_and_source_steer_no_terminal(project):
    program = project / HOSTILE
    program.write_text(PROGRAM)
    python = str(CAULK.parent / "python")
    ran = caulk(project, "run", "--full", "--progress", "line", "--", python, HOSTILE)
    assert "kept" in ran.stderr and ran.returncode == 0, ran.stderr
    assert steering(ran.stderr) == [], ran.stderr
    reports = ("--full",), ("--lines",), ("--from", "2", "--to", "6"), ("--format", "github"), ("--format", "concise")
    latest = max((project / ".caulk" / "runs").iterdir())
    for words in (*(("report", *options) for options in reports), ("runs",), ("verify", "--from", str(latest))):
        done = caulk(project, *words)
        assert done.returncode in (0, 1, 3) and done.stdout, (words, done.stderr)
        assert steering(done.stdout) == [], (words, done.stdout)
        assert steering(done.stderr) == [], (words, done.stderr)


def test_the_page_names_tests_that_are_there():
    page = (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"`((?:crates|python)/[\w./-]+?)(?:::(\w+))?`", page)
    assert len(named) > 8
    for file, test in named:
        text = (ROOT / file).read_text()
        assert test == "" or re.search(rf"\b(?:def|fn) {test}\b", text), f"{file}::{test}"
