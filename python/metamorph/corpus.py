"""The programs that are transformed: cases of the rules' pages, scenarios of the zoo, and programs of strangers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import tomllib

from .program import Program, mark

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "crates/caulk_rules/src/rules"
STRANGERS = ROOT / "python/tests/strangers"
EXPECTED = re.compile(r"[ \t]*# diagnostic: \[([a-z, -]+)\]( advice)?$")
FILE = "# file: "
CREEP = 2.0
"""MB per epoch that a scenario without a leaking side stays below half of."""


def all_programs(zoo: Path | None) -> Iterator[Program]:
    """Every program, in order."""
    for page in sorted(PAGES.glob("*.md")):
        yield from of_page(page.stem.replace("_", "-"), page.read_text())
    yield from of_strangers()
    if zoo:
        for truth in sorted(zoo.glob("*/truth.toml")):
            yield from of_scenario(truth)


def of_page(rule: str, markdown: str) -> Iterator[Program]:
    """The programs of a page; blocks that name a file belong together if nothing stands between them."""
    blocks = re.split(r"^```python\n(.*?)^```\n", markdown, flags=re.MULTILINE | re.DOTALL)
    projects: list[dict[str, str]] = []
    for between, text in zip(blocks[::2], blocks[1::2]):
        path = text.split("\n", 1)[0].removeprefix(FILE) if text.startswith(FILE) else None
        together = path and projects and "example.py" not in projects[-1] and not between.strip()
        if together and path:
            projects[-1][path] = text
        else:
            projects.append({path or "example.py": text})
    for number, files in enumerate(projects, 1):
        yield with_comments(f"page/{rule}/{number}", files)


def of_strangers() -> Iterator[Program]:
    """Files and folders; an expected line is marked as in the pages."""
    for path in sorted(STRANGERS.glob("*/*")):
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        base = path if path.is_dir() else path.parent
        texts = {str(file.relative_to(base)): file.read_text() for file in files if file.suffix == ".py"}
        if texts:
            yield with_comments(f"stranger/{path.parent.name}/{path.stem}", texts)


def with_comments(name: str, files: Mapping[str, str]) -> Program:
    """A program whose expected lines are named in its comments; advice is not expected."""
    lines: dict[str, dict[int, str]] = {}
    for path, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            found = EXPECTED.search(line)
            if found and not found[2]:
                lines.setdefault(path, {})[number] = found[1]
    return marked(name, files, lines)


def of_scenario(truth: Path) -> Iterator[Program]:
    """Both sides of a scenario, as `truth.toml` describes them."""
    known = tomllib.loads(truth.read_text())
    for side in ("leaky", "clean"):
        folder = truth.parent / side
        files = {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*.py"))}
        if not files:
            continue
        lines: dict[str, dict[int, str]] = {}
        for site in known.get("leak_sites", ()) if side == "leaky" else ():
            lines.setdefault(site["file"].removeprefix("leaky/"), {})[site["line"]] = known["leak_class"]
        program = marked(f"zoo/{known['id']}/{side}", files, lines, "main.py")
        words = ("--epochs", str(known["default_epochs"]), "--steps", str(known["default_steps"]))
        measured = known.get("measured", {}).get("leaky_growth_mb_per_epoch", CREEP)
        # What peaks and falls back, and what costs files, cannot be seen at the ends of epochs.
        grows = measured * 1e6 if known["symptom"] in ("growth", "clean") else 0.0
        yield replace(program, arguments=words, grows_by=grows)


def marked(
    name: str, files: Mapping[str, str], lines: Mapping[str, Mapping[int, str]], entry: str | None = None
) -> Program:
    """A program with a mark at each of the lines, and its rule."""
    rules: dict[int, str] = {}
    texts = dict(files)
    for path, expected in lines.items():
        numbers = {}
        for line, rule in expected.items():
            numbers[line] = len(rules) + 1
            rules[len(rules) + 1] = rule
        texts[path] = mark(files[path], numbers)
    return Program(name, texts, bool(rules), rules, entry)
