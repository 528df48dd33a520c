"""Real programs under the real command: what the fixture `run_caulk` returns, and what tests look up.

The command is the one beside this interpreter, as `cargo xtask develop`
installs it; `TEST_CAULK` names another.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

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

    @property
    def notes(self) -> list[str]:
        """The texts of all notes."""
        return [note["text"] for note in self.report["notes"]]

    def notes_about(self, code: str) -> list[str]:
        """The texts of the notes with this code."""
        return [note["text"] for note in self.report["notes"] if note["code"] == code]

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


def marked_line(program: Path, mark: str = "# leak") -> int:
    """Number of the only line of a program that ends with a mark."""
    lines = [number for number, line in enumerate(program.read_text().splitlines(), 1) if line.endswith(mark)]
    assert len(lines) == 1, f"{program.name}: {len(lines)} lines end with {mark!r}"
    return lines[0]
