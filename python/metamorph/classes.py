"""Classes cut another way: a base class, a mixin, functions outside; and functions as coroutines."""

from __future__ import annotations

import libcst as cst

from .registry import each_file
from .tree import Edit, code, has, named, statement, walk, within


def methods(kind: cst.ClassDef) -> list[cst.FunctionDef]:
    """Methods that may stand elsewhere: without `super`, private names and properties' setters."""
    given = [each for each in kind.body.body if isinstance(each, cst.FunctionDef)]
    return [each for each in given if not _is_bound(each) and each.name.value != "__init__"]


def _is_bound(method: cst.FunctionDef) -> bool:
    """Whether a method depends on the class in which it is written."""
    names = {each.value for each in walk(method) if isinstance(each, cst.Name)}
    private = any(name.startswith("__") and not name.endswith("__") for name in names)
    return (
        private
        or "super" in names
        or "__class__" in names
        or any(".setter" in code(each) for each in method.decorators)
    )


def may_be_cut(kind: cst.ClassDef, depth: int) -> bool:
    """Whether a class of the file may be divided."""
    return depth == 2 and not kind.decorators and not kind.keywords and isinstance(kind.body, cst.IndentedBlock)


@each_file("class-below-base")
class BelowBase(Edit):
    """The class as an empty subclass of one that has it all."""

    def leave_ClassDef(
        self, original: cst.ClassDef, updated: cst.ClassDef
    ) -> cst.ClassDef | cst.FlattenSentinel[cst.BaseStatement]:
        name = updated.name.value
        own = [each for each in walk(updated.body) if named(each) == name]
        enums = any("Enum" in code(base) or "Tuple" in code(base) or "Protocol" in code(base) for base in updated.bases)
        if not may_be_cut(original, len(self.stack)) or own or enums:
            return updated
        base = updated.with_changes(name=cst.Name(f"Common{name}"))
        return cst.FlattenSentinel([base, statement(f"class {name}(Common{name}):\n    pass\n")])


@each_file("methods-in-mixin")
class InMixin(Edit):
    """Methods in a mixin that comes first among the bases."""

    def leave_ClassDef(
        self, original: cst.ClassDef, updated: cst.ClassDef
    ) -> cst.ClassDef | cst.FlattenSentinel[cst.BaseStatement]:
        moved = methods(updated)
        rest = [each for each in updated.body.body if each not in moved]
        named_twice = len({each.name.value for each in moved}) < len(moved)
        names = {target for each in rest for target in self._names(each)}
        used = any(
            names & {each.value for each in within(one) if isinstance(each, cst.Name)}
            for one in moved
            if one.decorators
        )
        if not may_be_cut(original, len(self.stack)) or not moved or not rest or named_twice or used:
            return updated
        words = {each.value for line in rest for each in within(line) if isinstance(each, cst.Name)}
        if words & {each.name.value for each in moved} or any("Enum" in code(base) for base in updated.bases):
            return updated
        name = f"Doing{updated.name.value}"
        mixin = cst.ClassDef(cst.Name(name), updated.body.with_changes(body=moved), leading_lines=updated.leading_lines)
        bases = [cst.Arg(cst.Name(name)), *updated.bases]
        kept = updated.with_changes(bases=bases, body=updated.body.with_changes(body=rest))
        return cst.FlattenSentinel([mixin, kept.with_changes(lpar=cst.LeftParen(), rpar=cst.RightParen())])

    def _names(self, line: cst.CSTNode) -> set[str]:
        return (
            {each.value for each in walk(line) if isinstance(each, cst.Name)}
            if not isinstance(line, cst.FunctionDef)
            else set()
        )


@each_file("methods-outside")
class Outside(Edit):
    """Methods as functions of the file that the class takes up by name."""

    def leave_ClassDef(
        self, original: cst.ClassDef, updated: cst.ClassDef
    ) -> cst.ClassDef | cst.FlattenSentinel[cst.BaseStatement]:
        moved = [each for each in methods(updated) if not each.decorators]
        if not may_be_cut(original, len(self.stack)) or not moved:
            return updated
        functions, body = [], []
        for each in updated.body.body:
            if each in moved:
                name = f"{each.name.value.strip('_')}_of_{updated.name.value.lower()}"
                functions.append(each.with_changes(name=cst.Name(name)))
                body.append(statement(f"{each.name.value} = {name}"))
            else:
                body.append(each)
        kept = updated.with_changes(body=updated.body.with_changes(body=body))
        return cst.FlattenSentinel([*functions, kept])


@each_file("function-as-coroutine")
class AsCoroutine(Edit):
    """The first function of the file with a loop as a coroutine that is run to its end."""

    done = False

    def leave_FunctionDef(
        self, original: cst.FunctionDef, updated: cst.FunctionDef
    ) -> cst.FunctionDef | cst.FlattenSentinel[cst.BaseStatement]:
        name = updated.name.value
        loops = has(original.body, cst.For, cst.While)
        words = {each.value for each in walk(self.module) if isinstance(each, cst.Name)}
        calls_itself = name in {each.value for each in walk(original.body) if isinstance(each, cst.Name)}
        if self.done or len(self.stack) > 2 or not loops or updated.decorators or "asyncio" in words or calls_itself:
            return updated
        if updated.asynchronous or any(isinstance(each, (cst.Yield, cst.Await)) for each in within(original.body)):
            return updated
        self.done = True
        self.need("import asyncio")
        inner = updated.with_changes(
            name=cst.Name(f"{name}_in_time"), asynchronous=cst.Asynchronous(), leading_lines=original.leading_lines
        )
        outer = statement(
            f"def {name}(*words, **settings):\n    return asyncio.run({name}_in_time(*words, **settings))\n"
        )
        return cst.FlattenSentinel([inner, outer])
