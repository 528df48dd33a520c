"""Lines of the program's own sources at which something of a given name may grow."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from typing import NamedTuple

from . import _agent
from ._looking import prepare

#: Methods of the standard containers, queues and caches that add something.
_ADDS = frozenset("append appendleft extend extendleft insert add update setdefault put put_nowait push".split())


class Line(NamedTuple):
    """A line of source.

    Attributes
    ----------
    file, line
        Where, from 1.
    text
        What stands there, without its indentation.
    """

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def lines_that_grow(name: str) -> list[Line]:
    """Statements in the modules that the program has loaded which add to something of this name.

    By its name alone: of two containers of one name both are told.
    """
    prepare()
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    found = []
    for file in sorted(file for file in files if file and file.endswith(".py") and _agent.is_user_file(file)):
        lines = linecache.getlines(file)
        if any(name in line for line in lines):
            found += [Line(file, number, lines[number - 1].strip()) for number in _grow_sites("".join(lines), name)]
    return found


def _grow_sites(source: str, name: str) -> Iterator[int]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _ADDS and _is_named(node.func.value, name):
                yield node.lineno
        elif isinstance(node, ast.Assign):
            targets = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
            if any(_is_named(target, name) for target in targets):
                yield node.lineno
        elif isinstance(node, ast.AugAssign) and _is_named(node.target, name):
            yield node.lineno


def _is_named(node: ast.expr, name: str) -> bool:
    """Does the expression end with this name: `name`, `self.name`, `table['name']`, `name[k]`?"""
    while isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and node.slice.value == name:
            return True
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr == name
    return isinstance(node, ast.Name) and node.id == name
