"""`caulk check` on a program, and what of it is found."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .program import Program

ALARMING = ("warning", "error")
WELL = (0, 1)
SECONDS = 60


@dataclass(frozen=True)
class Alarm:
    """A finding above `info`."""

    rule: str
    message: str
    places: tuple[tuple[str, int, int], ...]

    def is_at(self, path: str, first: int, last: int) -> bool:
        """Whether one of its places is in these lines."""
        return any(file == path and start <= last and end >= first for file, start, end in self.places)

    def told(self) -> str:
        """For people."""
        path, line, _ = self.places[0]
        return f"{path}:{line} [{self.rule}] {self.message}"


def write(program: Program, folder: Path) -> None:
    """Writes the program's files."""
    for path, text in program.texts().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def alarms(caulk: Path, program: Program) -> list[Alarm]:
    """What `caulk check` reports above `info`."""
    words = ["check", "--isolated", "--no-cache", "--allow-unread", "--output-format", "json", "."]
    with tempfile.TemporaryDirectory() as folder:
        write(program, Path(folder))
        done = subprocess.run([caulk, *words], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode not in WELL:
        raise RuntimeError(f"`caulk check` of {program.id} ended with {done.returncode}: {done.stderr.strip()}")
    found = [finding for finding in json.loads(done.stdout)["findings"] if finding["severity"] in ALARMING]
    return [Alarm(finding["class"], finding["message"], _places(finding)) for finding in found if finding["sites"]]


def _places(finding: dict) -> tuple[tuple[str, int, int], ...]:
    sites = finding["sites"]
    return tuple((site["file"].removeprefix("./"), site["line"], max(site["end_line"], site["line"])) for site in sites)


def found(program: Program, given: list[Alarm]) -> set[int]:
    """The marks at which something is reported."""
    places = program.marked()
    return {
        number
        for number in program.rules
        if any(alarm.is_at(*place) for place in places.get(number, ()) for alarm in given)
    }
