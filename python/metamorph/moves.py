"""The same definitions in other places: another file, a package, another order."""

from __future__ import annotations

import posixpath

import libcst as cst

from .program import Program
from .registry import each_file, facts_of, whole
from .tree import Edit, bound, code, named, outer_names, walk, within


def is_start(line: cst.CSTNode) -> bool:
    """Whether it is `if __name__ == ...`."""
    return isinstance(line, cst.If) and "__name__" in code(line.test)


def moved_file(program: Program) -> str | None:
    """The file that is moved: the one that is started, or the only one."""
    return program.entry or (next(iter(program.files)) if len(program.files) == 1 else None)


def move(program: Program, to: str) -> Program:
    """The file's definitions in another file beside it, or below it; what starts them stays."""
    path = moved_file(program)
    if path is None or path.endswith("__init__.py"):
        return program
    facts = facts_of(program)
    module = facts.modules[path]
    rest = [line for line in module.body if is_start(line)]
    gone = [line for line in module.body if not is_start(line)]
    names = {name for name, _ in bound(module.with_changes(body=gone))}
    rebound = {name for each in walk(module) if isinstance(each, cst.FunctionDef) for name in outer_names(each)}
    stem = posixpath.basename(path).removesuffix(".py")
    reached = any(stem in text and name != path for name, text in program.files.items())
    stars = any(isinstance(each, cst.ImportStar) for each in walk(module))
    relative = any(isinstance(each, cst.ImportFrom) and each.relative for each in walk(module))
    if not names or names & rebound & _used(rest) or reached or stars or relative:
        return program
    wanted = sorted((_used(rest) & names) if rest else _own(gone))
    if not wanted:
        return program
    folder = posixpath.dirname(path)
    target = posixpath.join(folder, to)
    dots = to.removesuffix(".py").replace("/", ".")
    files = {name: text for name, text in program.files.items() if name != path}
    files[target] = module.with_changes(body=gone).code
    first = f"from {dots} import {', '.join(wanted)}\n"
    if "/" in to:
        inner = posixpath.basename(to).removesuffix(".py")
        files[posixpath.join(posixpath.dirname(target), "__init__.py")] = f"from .{inner} import {', '.join(wanted)}\n"
        first = f"from {posixpath.dirname(to)} import {', '.join(wanted)}\n"
    files[path] = first + cst.Module(rest).code
    return program.with_files(files)


def _used(part: list[cst.BaseStatement]) -> set[str]:
    return {each.value for line in part for each in walk(line) if isinstance(each, cst.Name)}


def _own(part: list[cst.BaseStatement]) -> set[str]:
    """Functions, classes and variables of a file, without what it imports."""
    imported = cst.Module([line for line in part if has_import(line)])
    return {name for name, _ in bound(cst.Module(part))} - {name for name, _ in bound(imported)}


def has_import(line: cst.CSTNode) -> bool:
    """Whether a line imports."""
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], (cst.Import, cst.ImportFrom))


@whole("file-moved-before")
def before(program: Program) -> Program:
    """Into a file that comes first in the order of names."""
    return move(program, "aa_parts.py")


@whole("file-moved-behind")
def behind(program: Program) -> Program:
    """Into a file that comes last."""
    return move(program, "zz_parts.py")


@whole("file-in-package")
def package(program: Program) -> Program:
    """Into a module of a package that hands its names on."""
    return move(program, "kit_of_it/inner.py")


@whole("classes-in-file")
def classes(program: Program) -> Program:
    """Classes that need nothing but imports and each other in a file of their own."""
    path = moved_file(program)
    if path is None:
        return program
    module = facts_of(program).modules[path]
    imports = [line for line in module.body if has_import(line)]
    given = {name for name, _ in bound(cst.Module(imports))}
    top = {name for name, _ in bound(module)}
    chosen = [line for line in module.body if isinstance(line, cst.ClassDef)]
    known = given | {each.name.value for each in chosen}
    stars = any(isinstance(each, cst.ImportStar) for each in walk(module))
    if not chosen or stars or any((_used([each]) & top) - known for each in chosen):
        return program
    first = next(number for number, line in enumerate(module.body) if line in chosen)
    earlier = [line for line in module.body[:first] if not has_import(line)]
    if any(isinstance(line, cst.SimpleStatementLine) and _used([line]) & known for line in earlier):
        return program
    new = cst.parse_statement(f"from kinds_of_it import {', '.join(each.name.value for each in chosen)}")
    rest = [line for line in module.body if line not in chosen]
    at = first
    body = [*rest[:at], new, *rest[at:]]
    target = posixpath.join(posixpath.dirname(path), "kinds_of_it.py")
    files = {**program.files, path: module.with_changes(body=body).code}
    return program.with_files({**files, target: cst.Module([*imports, *chosen]).code})


def turned(body: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """The statements with each run of plain functions in the other order."""
    new: list[cst.CSTNode] = []
    run: list[cst.CSTNode] = []
    for line in [*body, None]:
        if isinstance(line, cst.FunctionDef) and not line.decorators and not _has_values(line):
            run.append(line)
            continue
        names = [each.name.value for each in run]
        new.extend(reversed(run) if len(set(names)) == len(names) else run)
        run = []
        if line is not None:
            new.append(line)
    return new


def _has_values(function: cst.FunctionDef) -> bool:
    """Whether defaults are evaluated when the function is made."""
    given = [each.default for each in within(function.params) if isinstance(each, cst.Param)]
    return any(named(each) or isinstance(each, cst.Call) for each in given if each)


@each_file("methods-reordered")
class Methods(Edit):
    """Methods of each class in the other order."""

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef:
        if not isinstance(updated.body, cst.IndentedBlock):
            return updated
        return updated.with_changes(body=updated.body.with_changes(body=turned(list(updated.body.body))))


@each_file("functions-reordered")
class Functions(Edit):
    """Functions of the file in the other order."""

    def leave_Module(self, original: cst.Module, updated: cst.Module) -> cst.Module:
        return updated.with_changes(body=turned(list(updated.body)))
