"""The list of transformations. Each takes a program and gives it in other words, or as it was if nothing fits."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .program import Program
from .tree import Edit, Facts


@functools.lru_cache(maxsize=8)
def _facts(files: tuple[tuple[str, str], ...]) -> Facts:
    return Facts(dict(files))


def facts_of(program: Program) -> Facts:
    """What a program binds; read once if the same program is asked for again."""
    return _facts(tuple(sorted(program.files.items())))


Transformation = Callable[[Program], Program]

TRANSFORMATIONS: dict[str, Transformation] = {}


def whole(name: str) -> Callable[[Transformation], Transformation]:
    """Registers a transformation of a whole program."""

    def register(function: Transformation) -> Transformation:
        TRANSFORMATIONS[name] = function
        return function

    return register


def each_file(name: str) -> Callable[[type[Edit]], type[Edit]]:
    """Registers a transformation that edits every file on its own."""

    def register(edit: type[Edit]) -> type[Edit]:
        def apply(program: Program) -> Program:
            facts = facts_of(program)
            return program.with_files({path: edit(facts, module).run().code for path, module in facts.modules.items()})

        TRANSFORMATIONS[name] = apply
        return edit

    return register
