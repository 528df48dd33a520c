"""Blocks of code in the documentation, each with the mark above it.

A mark is an HTML comment, which no reader sees:

- `<!-- file: train.py -->`: the block becomes this file, for the commands that follow on the page
- `<!-- run -->`: the commands are run, and print what stands below them; `<!-- run: exit 1 -->` expects that exit code,
  and `<!-- run: full -->` belongs to `cargo xtask test --full`
- `<!-- not run: it needs a GPU -->`: nothing is run, for the reason given
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness import CAULK, ROOT, program_environment

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>(?:file|run|not run)\b.*?) -->\n\n?)?```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
COMMANDS = ("bash", "console", "sh", "shell")
#: Figures differ from run to run, and so do words that depend on one.
FIGURE = re.compile(r"\d[\d.,]*(?: (?:B|KB|MB|GB|ms|s|min|h)\b)?")


@dataclass(frozen=True)
class Block:
    """A block of code, and what its mark asks for."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    @property
    def is_command(self) -> bool:
        return self.language in COMMANDS

    @property
    def is_run(self) -> bool:
        return self.mark == "run" or self.mark.startswith("run:")

    @property
    def is_full(self) -> bool:
        return "full" in self.mark.removeprefix("run:").split()

    @property
    def code(self) -> int:
        found = re.search(r"\bexit (\d+)", self.mark)
        return int(found[1]) if found else 0

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command of a `console` block with the lines that it prints."""
        commands: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands:
                commands[-1][1].append(line)
        return commands


def pages() -> list[Path]:
    """Every page that people read."""
    own = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*own, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in its order."""
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start("text")), found["language"], found["mark"] or "", found["text"])
        for found in BLOCK.finditer(text)
    ]


def run(page: Path, folder: Path, full: bool) -> None:
    """Runs the commands of a page in a folder, in the page's order."""
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = program_environment(PATH=f"{CAULK.parent}{os.pathsep}{os.environ['PATH']}", HOME=str(folder))
    for block in blocks(page):
        if block.mark.startswith("file: "):
            file = folder / block.mark.removeprefix("file: ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        if not block.is_run or (block.is_full and not full):
            continue
        for command, printed in block.commands():
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            said = done.stdout + done.stderr
            assert done.returncode == block.code, f"{block}: `{command}` ended with {done.returncode}\n{said}"
            missing = absent(printed, said)
            assert missing is None, f"{block}: `{command}` does not print `{missing}`, but\n{said}"


def absent(expected: list[str], printed: str) -> str | None:
    """The first line that is not printed, in the order of the lines and whatever the figures; `...` stands for any lines."""
    lines = iter([masked(line) for line in printed.splitlines()])
    return next((line for line in expected if line.strip() not in ("", "...") and masked(line) not in lines), None)


def masked(line: str) -> str:
    return " ".join(FIGURE.sub("#", line).replace("─", "").split())
