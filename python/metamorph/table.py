"""Invariance as tables: by transformation and by rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .measure import Row


@dataclass
class Counts:
    """Variants counted."""

    programs: set[str]
    kept: int = 0
    lost: int = 0
    clean: int = 0
    flagged: int = 0

    def add(self, row: Row) -> None:
        """Counts a variant."""
        self.programs.add(row.program)
        self.clean += not row.leaks
        self.flagged += bool(row.flagged)

    def cells(self) -> list[str]:
        """As the table shows it."""
        leaky = self.kept + self.lost
        share = f"{100 * self.kept / leaky:.1f} %" if leaky else "-"
        return [str(len(self.programs)), f"{self.kept}/{leaky}", share, f"{self.flagged}/{self.clean}"]


def counted(rows: Iterable[Row], keys: Callable[[Row], Iterable[str]]) -> dict[str, Counts]:
    """Marked lines and clean variants, by key."""
    every: dict[str, Counts] = defaultdict(lambda: Counts(set()))
    for row in rows:
        for key in keys(row):
            every[key].add(row)
            every[key].kept += len(row.kept)
            every[key].lost += len(row.lost)
    return every


def by_rule(rows: Iterable[Row]) -> dict[str, Counts]:
    """Marked lines, by their rule."""
    every: dict[str, Counts] = defaultdict(lambda: Counts(set()))
    for row in rows:
        for rule in row.kept:
            every[rule].kept += 1
        for rule in row.lost:
            every[rule].lost += 1
        for rule in {*row.kept, *row.lost}:
            every[rule].programs.add(row.program)
        if not row.leaks:
            name = row.program.split("/")[1] if row.program.startswith("page/") else row.program.split("/")[0]
            every[f"clean: {name}"].add(row)
    return every


def rendered(rows: Sequence[Row]) -> str:
    """Both tables, then the sums."""
    single = [row for row in rows if len(row.names) == 1]
    parts = [
        table("transformation", counted(single, lambda row: row.names)),
        table("rule", by_rule(rows)),
        table("sum", counted(rows, lambda row: [f"{len(row.names)} at a time", "all"])),
    ]
    return "\n\n".join(parts)


def table(title: str, counts: dict[str, Counts]) -> str:
    """Columns, the worst first."""
    order = sorted(counts, key=lambda key: (-counts[key].flagged, -counts[key].lost, key))
    lines = [[title, "programs", "found", "", "clean flagged"], *([key, *counts[key].cells()] for key in order)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def share(rows: Iterable[Row]) -> float:
    """Of the marked lines of leaky variants, how many are still found."""
    rows = list(rows)
    kept, lost = sum(len(row.kept) for row in rows), sum(len(row.lost) for row in rows)
    return kept / (kept + lost) if kept + lost else 1.0
