"""A program as texts whose expected lines are marked, so that they can be followed through a transformation.

A mark is a comment at the end of a statement: `rows.append(x)  #@3`. LibCST keeps comments, so a statement carries its
mark along. A transformation that makes several lines of one copies the mark to each.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

MARK = re.compile(r"[ \t]*#@([0-9,]+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """Files of one program."""

    id: str
    files: Mapping[str, str]
    """Texts with marks, by path."""
    leaks: bool
    """Whether it has a line that must be found."""
    rules: Mapping[int, str] = field(default_factory=dict)
    """The leak class that is expected at a mark."""
    entry: str | None = None
    """The file that is started, if the program can be."""
    arguments: tuple[str, ...] = ()
    """Of the program, when it is started."""
    grows_by: float = 0.0
    """Bytes per epoch of the leaking side of its scenario; 0 for programs that are not run."""

    def with_files(self, files: Mapping[str, str]) -> Program:
        """The same program in other files."""
        return replace(self, files=files)

    def texts(self) -> dict[str, str]:
        """The texts without marks; lines keep their numbers."""
        return {path: MARK.sub("", text) for path, text in self.files.items()}

    def compiles(self) -> bool:
        """Whether every file is valid Python."""
        try:
            for path, text in self.files.items():
                compile(text, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
        return True

    def marked(self) -> dict[int, list[tuple[str, int, int]]]:
        """Path, first and last line of each statement that carries a mark, by mark."""
        places: dict[int, list[tuple[str, int, int]]] = {}
        for path, text in self.files.items():
            ends = {text.count("\n", 0, found.start()) + 1: found[1] for found in MARK.finditer(text)}
            for first, last in statements(text) if ends else ():
                for mark in ends.get(last, "").split(","):
                    if mark:
                        places.setdefault(int(mark), []).append((path, first, last))
        return places


def statements(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of every statement; of one with a body: of its header; of decorators: their own."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            for decorator in getattr(node, "decorator_list", ()):
                yield decorator.lineno, decorator.end_lineno or decorator.lineno
            first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            last = header_end(text, first, body[0]) if body else node.end_lineno
            yield first, last


def header_end(text: str, first: int, inner: ast.stmt) -> int:
    """Last line of a header: that of the colon before the body."""
    start = min([inner.lineno, *(each.lineno for each in getattr(inner, "decorator_list", ()))])
    lines = text.split("\n")
    for number in range(start - 1, first - 1, -1):
        line = lines[number - 1].split("#")[0].strip()
        if line.endswith(":"):
            return number
    return first


def mark(text: str, lines: Mapping[int, int]) -> str:
    """Puts a mark at the end of the statement of each line: `lines` has the mark of a line."""
    ends: dict[int, list[int]] = {}
    for line, number in lines.items():
        around = [place for place in statements(text) if place[0] <= line <= place[1]]
        if around:
            ends.setdefault(max(around)[1], []).append(number)
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    rows = text.split("\n")
    for end, numbers in ends.items():
        row = rows[end - 1][: comments.get(end)].rstrip()
        rows[end - 1] = f"{row}  #@{','.join(map(str, sorted(set(numbers))))}"
    return "\n".join(rows)
