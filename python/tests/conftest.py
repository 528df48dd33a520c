"""Runs real programs under the real command and reads its report.

The fixture `run_caulk` is all that tests need. The command is the one beside this interpreter, as `cargo xtask develop`
installs it; `TEST_CAULK` names another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
CAULK = Path(os.environ.get("TEST_CAULK") or Path(sys.executable).parent / "caulk")
ALARMING = ("warning", "error")


@dataclass(frozen=True)
class Run:
    """What came of one `caulk run`."""

    code: int
    stdout: str
    stderr: str
    folder: Path
    report: dict = field(repr=False)

    @property
    def findings(self) -> list[dict]:
        return self.report["findings"]

    @property
    def alarms(self) -> list[dict]:
        """Findings that claim harm."""
        return [finding for finding in self.findings if finding["severity"] in ALARMING]

    def verdict(self, series: str = "in_use", role: str = "main") -> dict | None:
        """The judgement on one series of the first process with that role."""
        for verdict in self.report["verdicts"]:
            if verdict["series"] == series and verdict["process"]["role"] == role:
                return verdict
        return None

    def alarm_at(self, file: str, line: int) -> dict | None:
        """The first finding that claims harm and blames a line of a file."""
        for finding in self.alarms:
            for site in finding["sites"]:
                if Path(site["file"]).name == file and site["line"] <= line <= site.get("end_line", site["line"]):
                    return finding
        return None

    def told(self) -> str:
        """Everything that explains a failed assertion."""
        brief = [
            {key: finding[key] for key in ("class", "severity", "confidence", "sites", "holder", "message")}
            for finding in self.findings
        ]
        seen = {key: self.report.get(key) for key in ("verdicts", "notes", "problems")}
        return f"code {self.code}\n{json.dumps({'findings': brief, **seen}, indent=1)}\n{self.stdout}\n{self.stderr}"


def program_environment(**changes: str) -> dict[str, str]:
    """Our variables without what would decide the outcome, with one thread and no display."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CAULK_", "PYTHON", "PYTEST_", "TEST_", "COV_"))
    }
    return {**inherited, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1", **changes}


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


def marked_line(program: Path, mark: str = "# leak") -> int:
    """Number of the only line of a program that ends with a mark."""
    lines = [number for number, line in enumerate(program.read_text().splitlines(), 1) if line.endswith(mark)]
    assert len(lines) == 1, f"{program.name}: {len(lines)} lines end with {mark!r}"
    return lines[0]
