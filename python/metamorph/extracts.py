"""Values and bodies named, inlined, moved: the same statements cut another way."""

from __future__ import annotations

from collections import Counter

import libcst as cst

from .registry import each_file
from .tree import (
    KEPT,
    Edit,
    block,
    bound,
    can_move,
    has,
    is_plain,
    lines,
    mark_of,
    named,
    outer_names,
    statement,
    walk,
    with_mark,
    within,
)


def kept_value(line: cst.SimpleStatementLine) -> tuple[cst.Expr, cst.Call] | None:
    """The call of a line that hands something over to be kept."""
    only = line.body[0] if len(line.body) == 1 else None
    call = only.value if isinstance(only, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return None
    argument = call.args[0]
    if call.func.attr.value not in KEPT or argument.star or argument.keyword or not is_plain(call.func.value):
        return None
    return (only, call) if can_move(argument.value) else None


@each_file("value-named")
class ValueNamed(Edit):
    """`rows.append(f(x))` as `thing = f(x)` and `rows.append(thing)`."""

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        found = kept_value(updated)
        if not found or not self.function:
            return updated
        _, call = found
        handed = call.with_changes(args=[cst.Arg(cst.Name("thing_to_keep"))])
        return lines(updated, statement("thing_to_keep = {v}", v=call.args[0].value), statement("{c}", c=handed))


@each_file("value-by-walrus")
class ValueByWalrus(Edit):
    """`rows.append(thing := f(x))`."""

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        found = kept_value(updated)
        if not found or not self.function:
            return updated
        only, call = found
        value = cst.NamedExpr(cst.Name("thing_in_hand"), call.args[0].value)
        handed = call.with_changes(args=[cst.Arg(value)])
        return updated.with_changes(body=[only.with_changes(value=handed)])


class Bodies(Edit):
    """Edits the statements of each block."""

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock:
        return updated.with_changes(body=self.edit(list(updated.body)))

    def edit(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """The statements in other words."""
        raise NotImplementedError


def single_assignment(line: cst.BaseStatement) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Target and value of a line that assigns one value to one target."""
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if isinstance(only, cst.Assign) and len(only.targets) == 1 and not isinstance(only.value, cst.Tuple):
        target = only.targets[0].target
        if not isinstance(target, (cst.Tuple, cst.List)) and not has(only.value, cst.Yield, cst.Await):
            return target, only.value
    return None


@each_file("assignments-together")
class Together(Bodies):
    """`a = x` and `b = y` as `a, b = x, y`."""

    def edit(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        new: list[cst.BaseStatement] = []
        while body:
            first = body.pop(0)
            pair = self._pair(first, body[0]) if body else None
            if pair:
                new.append(pair)
                body.pop(0)
            else:
                new.append(first)
        return new

    def _pair(self, one: cst.BaseStatement, other: cst.BaseStatement) -> cst.BaseStatement | None:
        first, second = single_assignment(one), single_assignment(other)
        if not first or not second or self.in_class:
            return None
        # What the second needs must not come from the first: only names, constants and empty containers may follow.
        safe = isinstance(second[1], (cst.Integer, cst.Float, cst.SimpleString, cst.List, cst.Dict)) or is_plain(
            second[1]
        )
        used = {each.value for part in (second[1], second[0]) for each in walk(part) if isinstance(each, cst.Name)}
        targets = {each.value for each in walk(first[0]) if isinstance(each, cst.Name)} - {"self"}
        attributes = has(first[0], cst.Attribute, cst.Subscript) and has(second[1], cst.Attribute, cst.Subscript)
        if not safe or used & targets or attributes or isinstance(second[0], cst.Subscript):
            return None
        if isinstance(second[1], (cst.List, cst.Dict)) and second[1].elements:
            return None
        made = statement("{a}, {b} = {x}, {y}", a=first[0], b=second[0], x=first[1], y=second[1])
        marks = [mark_of(each).strip().removeprefix("#@") for each in (one, other)]
        joined = ",".join(mark for mark in marks if mark)
        comment = cst.parse_statement(f"pass  #@{joined}") if joined else one
        made = with_mark(made, comment)
        return made.with_changes(leading_lines=one.leading_lines)


@each_file("value-inlined")
class Inlined(Bodies):
    """`a = f(x)` and a line that uses `a`, once and first, as that line with `f(x)` in it."""

    def edit(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        if not isinstance(self.stack[-1], cst.FunctionDef):
            return body
        counts = Counter(each.value for each in walk(self.stack[-1]) if isinstance(each, cst.Name))
        new: list[cst.BaseStatement] = []
        for line in body:
            found = single_assignment(new[-1]) if new else None
            name = named(found[0]) if found else None
            fits = name and counts[name] == 2 and name not in outer_names(self.stack[-1])
            inlined = self._inline(line, str(name), found[1]) if fits and found else None
            if inlined:
                merged = with_mark(inlined, new[-1]) if mark_of(new[-1]) else inlined
                new[-1] = merged.with_changes(leading_lines=new[-1].leading_lines)
            else:
                new.append(line)
        return new

    def _inline(self, line: cst.BaseStatement, name: str, value: cst.BaseExpression) -> cst.BaseStatement | None:
        only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        where = only.value if isinstance(only, (cst.Expr, cst.Assign, cst.Return)) else None
        if isinstance(only, cst.Assign) and has(only.targets[0], cst.Call, cst.Subscript):
            return None
        # Evaluated first: the receiver of the call, or its only argument beside plain ones.
        if not isinstance(where, cst.Call) or has(value, cst.NamedExpr, cst.GeneratorExp, cst.Lambda):
            return None
        receiver = where.func.value if isinstance(where.func, cst.Attribute) else where.func
        slot = [argument for argument in where.args if named(argument.value) == name]
        others = [argument for argument in where.args if named(argument.value) != name]
        if not slot or not is_plain(receiver) or not all(is_plain(other.value) for other in others):
            return None
        return line.deep_replace(slot[0].value, value)


@each_file("body-to-function")
class BodyToFunction(Edit):
    """The body of an outermost loop in a function of its own beside it."""

    number = 0

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | cst.FlattenSentinel[cst.BaseStatement]:
        function = self.function
        body = updated.body
        if function is None or not isinstance(body, cst.IndentedBlock) or updated.asynchronous or updated.orelse:
            return updated
        leaves = (cst.Break, cst.Continue, cst.Return, cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.NamedExpr)
        if any(isinstance(each, leaves) for each in within(body)) or "super" in self._names(body):
            return updated
        assigned = {name for name, _ in bound(_as_function(body)) if name not in outer_names(function)}
        shared = self._shared(function, original, assigned)
        if shared is None or outer_names(function) & {name for name, _ in bound(_as_function(body))}:
            return updated
        self.number += 1
        name = f"one_turn_{self.number}"
        declared = [statement(f"nonlocal {', '.join(sorted(shared))}")] if shared else []
        inner = cst.FunctionDef(
            cst.Name(name), self._parameters(updated, shared), body.with_changes(body=[*declared, *body.body])
        )
        words = [cst.Arg(cst.Name(each)) for each in self._loop_names(updated)]
        call = cst.SimpleStatementLine([cst.Expr(cst.Call(cst.Name(name), words))])
        inner = inner.with_changes(body=inner.body.with_changes(header=cst.TrailingWhitespace()))
        loop = updated.with_changes(body=block([call]).with_changes(header=body.header), leading_lines=[])
        return cst.FlattenSentinel([inner.with_changes(leading_lines=updated.leading_lines), loop])

    def _names(self, node: cst.CSTNode) -> set[str]:
        return {each.value for each in walk(node) if isinstance(each, cst.Name)}

    def _loop_names(self, loop: cst.For) -> list[str]:
        return [each.value for each in walk(loop.target) if isinstance(each, cst.Name)]

    def _parameters(self, loop: cst.For, shared: set[str]) -> cst.Parameters:
        return cst.Parameters([cst.Param(cst.Name(each)) for each in self._loop_names(loop)])

    def _shared(self, function: cst.FunctionDef, loop: cst.For, assigned: set[str]) -> set[str] | None:
        """Names that the body assigns and that are used outside of it; nothing if they have no value before."""
        targets = set(self._loop_names(loop))
        inside = Counter(each.value for each in walk(loop) if isinstance(each, cst.Name))
        everywhere = Counter(each.value for each in walk(function) if isinstance(each, cst.Name))
        outside = {name for name in assigned | targets if everywhere[name] > inside[name]}
        nested = [each for each in within(function.body, enter=True) if isinstance(each, (cst.For, cst.While))]
        inner = any(loop in tuple(within(each)) for each in nested if each is not loop)
        if targets & (outside | assigned) or inner or has(loop.target, cst.Attribute, cst.Subscript):
            return None
        before = self._bound_outside(function, loop)
        parameters = {name for name, value in bound(function)}
        carried = {name for name in assigned - outside if self._read_first(loop, name)}
        if carried or not outside <= before & parameters:
            return None
        return outside

    def _bound_outside(self, function: cst.FunctionDef, loop: cst.For) -> set[str]:
        without = function.deep_replace(loop, statement("pass"))
        return {name for name, _ in bound(without)}

    def _read_first(self, loop: cst.For, name: str) -> bool:
        """Whether the body may read a value of the turn before: its first use is no plain assignment."""
        for line in loop.body.body:
            if name in self._names(line):
                target = single_assignment(line)
                unpacked = isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
                plain = target is not None or unpacked
                value = line.body[0].value if plain else line
                return not plain or name in self._names(value)
        return False


def _as_function(body: cst.BaseSuite) -> cst.FunctionDef:
    return cst.FunctionDef(cst.Name("_"), cst.Parameters(), body)
