"""How a program's variants are judged, compared with the program itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from . import checking, running
from .program import Program
from .variants import Variant, variants


@dataclass(frozen=True)
class Row:
    """One variant's result."""

    program: str
    names: tuple[str, ...]
    leaks: bool
    kept: tuple[str, ...] = ()
    """Rules of the lines that are found in the program and in the variant."""
    lost: tuple[str, ...] = ()
    """Rules of the lines that are found in the program alone."""
    flagged: tuple[str, ...] = ()
    """What is reported in a variant of a clean program."""

    def is_well(self) -> bool:
        """Whether the variant is judged as its program is."""
        return not self.lost and not self.flagged

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Job:
    """What is asked."""

    caulk: Path
    seed: int
    only: tuple[str, ...] = ()
    failures: Path | None = None
    """Where variants that are judged otherwise are written."""
    share: float = 1.0
    """Of the variants, which are checked: a seeded sample."""
    run: bool = False
    """Programs are run, and must grow or not; instead of being checked."""


def measured(job: Job, programs: Sequence[Program], at_a_time: int) -> list[Row]:
    """The results of all variants of programs that are judged right themselves."""
    with ProcessPoolExecutor(at_a_time) as pool:
        return [row for rows in pool.map(_of_program, [job] * len(programs), programs) for row in rows]


@dataclass(frozen=True)
class Judgement:
    """What is reported of a program."""

    marks: frozenset[int]
    """Marked lines that are found."""
    alarms: tuple[str, ...] = ()
    """What is reported although nothing leaks."""

    def is_right(self, program: Program) -> bool:
        """Whether a leak is found, and nothing else reported."""
        return bool(self.marks) if program.leaks else not self.alarms


def _of_program(job: Job, program: Program) -> list[Row]:
    judge = _ran if job.run else _checked
    if job.run and not program.grows_by:
        return []
    base = judge(job, program)
    # A leak that is not found and a false alarm are no matter of the words.
    if not base.is_right(program):
        return []
    chosen = variants(program, job.seed, job.only, job.share)
    return [_row(job, program, variant, base, judge(job, variant.program)) for variant in chosen]


def _checked(job: Job, program: Program) -> Judgement:
    given = checking.alarms(job.caulk, program)
    if unmarked := program.rules.keys() - program.marked().keys():
        raise RuntimeError(f"marks {unmarked} of {program.id} are lost")
    alarms = () if program.leaks else tuple(alarm.told() for alarm in given)
    return Judgement(frozenset(checking.found(program, given)), alarms)


def _ran(job: Job, program: Program) -> Judgement:
    grows = running.grows(program)
    marks = frozenset(program.rules) if program.leaks and grows else frozenset()
    return Judgement(marks, ("its memory grows",) if grows and not program.leaks else ())


def _row(job: Job, program: Program, variant: Variant, base: Judgement, now: Judgement) -> Row:
    rules = program.rules
    kept = tuple(rules[number] for number in sorted(base.marks & now.marks))
    lost = tuple(rules[number] for number in sorted(base.marks - now.marks))
    row = Row(program.id, variant.names, program.leaks, kept, lost, now.alarms)
    if job.failures and not row.is_well():
        keep(job.failures / program.id.replace("/", "__") / "+".join(variant.names), variant.program, row)
    return row


def keep(folder: Path, program: Program, row: Row) -> None:
    """Writes a variant beside what is wrong with it."""
    shutil.rmtree(folder, ignore_errors=True)
    checking.write(program, folder)
    places = {number: program.marked().get(number) for number in program.rules}
    (folder / "why.txt").write_text(f"lost: {row.lost}\nmarked: {places}\nflagged:\n" + "\n".join(row.flagged) + "\n")
