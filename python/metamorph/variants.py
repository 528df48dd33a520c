"""Which transformations are applied to a program: each alone, and seeded pairs and triples of those that fit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .program import Program
from .transformations import TRANSFORMATIONS

PAIRS, TRIPLES = 20, 10


@dataclass(frozen=True)
class Variant:
    """A program after some transformations."""

    names: tuple[str, ...]
    program: Program


def variants(program: Program, seed: int, only: Sequence[str] = (), share: float = 1.0) -> Iterator[Variant]:
    """Every variant; with `only`: by one of these transformations alone; with `share`: a seeded part of them."""
    chance = random.Random(f"{seed} {program.id}")
    fit = []
    for name in sorted(only or TRANSFORMATIONS):
        variant = applied(program, (name,)) if chance.random() < share else None
        if variant:
            fit.append(name)
            yield variant
    if not only:
        yield from combined(program, fit, chance, share)


def combined(program: Program, fit: Sequence[str], chance: random.Random, share: float) -> Iterator[Variant]:
    """Pairs and triples, none twice."""
    for size, most in ((2, PAIRS), (3, TRIPLES)):
        count = round(most * share)
        seen: set[tuple[str, ...]] = set()
        for _ in range(3 * count if len(fit) >= size else 0):
            names = tuple(chance.sample(list(fit), size))
            if len(seen) == count or names in seen:
                continue
            variant = applied(program, names)
            if variant:
                seen.add(names)
                yield variant


def applied(program: Program, names: Sequence[str]) -> Variant | None:
    """The program after transformations; none if one of them changes nothing, or what it leaves is no Python."""
    for name in names:
        new = TRANSFORMATIONS[name](program)
        if new.texts() == program.texts() or not new.compiles():
            return None
        program = new
    return Variant(tuple(names), program)
