"""Fixtures: programs under the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from harness import CAULK, Run, program_environment


@pytest.fixture
def run_caulk(tmp_path: Path) -> Callable[..., Run]:
    """`run_caulk(program, *arguments, options=(), env={}, cwd=None, python=..., timeout=300)`

    `program` is the text of a Python program (more than one line), the path of one, or a whole command as a list.
    """
    count = 0

    def run(
        program: str | Path | Sequence[str | Path],
        *arguments: str,
        options: Sequence[str] = (),
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        python: str | Path = sys.executable,
        timeout: float = 300,
        stdin: str = "",
    ) -> Run:
        nonlocal count
        count += 1
        folder = tmp_path / f"caulk-{count}"
        folder.mkdir()
        if isinstance(program, str) and "\n" in program:
            path = folder / "program.py"
            path.write_text(program)
            program = path
        command = [str(python), str(program)] if isinstance(program, str | Path) else [str(word) for word in program]
        report = folder / "report.json"
        line = [str(CAULK), "run", "--output", str(folder / "run"), "--report-json", str(report), *options, "--"]
        done = subprocess.run(
            [*line, *command, *arguments],
            cwd=cwd or folder,
            env=program_environment(**(env or {})),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert report.exists(), f"no report; code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Run(done.returncode, done.stdout, done.stderr, folder, json.loads(report.read_text()))

    return run


@pytest.fixture
def control_group() -> Iterator[Callable[[int], list[str]]]:
    """`control_group(limit)`: words before a command that let it run in a control group with a limit, in bytes.

    Skips where this machine lets us make none.
    """
    group = Path("/sys/fs/cgroup/memory") / f"caulk-test-{os.getpid()}"

    def enter(limit: int) -> list[str]:
        try:
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(limit))
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        return ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]

    yield enter
    if group.exists():
        group.rmdir()
