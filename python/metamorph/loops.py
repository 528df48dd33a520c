"""Loops in other words: `for`, `while`, `map`, comprehensions."""

from __future__ import annotations

import libcst as cst

from .registry import each_file
from .tree import Edit, code, has, lines, named, statement, walk, with_mark


def has_no_else(loop: cst.For) -> bool:
    """Whether it is a plain loop over lines of its own."""
    return not loop.orelse and not loop.asynchronous and isinstance(loop.body, cst.IndentedBlock)


class For(Edit):
    """Rewrites each `for`."""

    number = 0

    def fresh(self, word: str) -> str:
        """A name that no other loop of the file has."""
        self.number += 1
        return f"{word}_{self.number}"

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.BaseStatement | cst.FlattenSentinel:
        # In the body of a class the names would become its attributes.
        if not has_no_else(updated) or self.in_class:
            return updated
        new = self.rewrite(updated)
        if not new:
            return updated
        marked = [with_header(each, updated) for each in new]
        marked[0] = marked[0].with_changes(leading_lines=updated.leading_lines)
        return cst.FlattenSentinel(marked)

    def rewrite(self, loop: cst.For) -> list[cst.BaseStatement]:
        """Statements in its place; none where it does not fit."""
        raise NotImplementedError


def with_header(new: cst.BaseStatement, loop: cst.For) -> cst.BaseStatement:
    """A statement with the mark of a loop's header."""
    if isinstance(new, cst.SimpleStatementLine):
        return with_mark(new, loop)
    body = new.body.with_changes(header=loop.body.header)
    return new.with_changes(body=body)


@each_file("for-to-while")
class ForToWhile(For):
    """`while True` with `next` and `StopIteration`."""

    def rewrite(self, loop: cst.For) -> list[cst.BaseStatement]:
        steps = self.fresh("steps")
        taken = statement(
            f"try:\n    {{target}} = next({steps})\nexcept StopIteration:\n    break\n", target=loop.target
        )
        body = loop.body.with_changes(body=[taken, *loop.body.body])
        source = loop.iter
        return [statement(f"{steps} = iter({{s}})", s=source), cst.While(test=cst.Name("True"), body=body)]


@each_file("range-to-counter")
class RangeToCounter(For):
    """`for i in range(n)` as a `while` with a counter."""

    def rewrite(self, loop: cst.For) -> list[cst.BaseStatement]:
        call = loop.iter
        if not isinstance(call, cst.Call) or named(call.func) != "range" or len(call.args) != 1:
            return []
        at, end = self.fresh("at"), self.fresh("end")
        first = [statement(f"{{t}} = {at}", t=loop.target), statement(f"{at} += 1")]
        body = loop.body.with_changes(body=[*first, *loop.body.body])
        made = [statement(f"{at} = 0"), statement(f"{end} = {{e}}", e=call.args[0].value)]
        return [*made, cst.While(test=cst.parse_expression(f"{at} < {end}"), body=body)]


@each_file("loop-enumerated")
class Enumerated(For):
    """`for number, x in enumerate(xs)`."""

    def rewrite(self, loop: cst.For) -> list[cst.BaseStatement]:
        target = loop.target
        if isinstance(target, cst.Tuple) and not target.lpar:
            target = target.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        source = cst.Call(cst.Name("enumerate"), [cst.Arg(loop.iter)])
        number = cst.Element(cst.Name(self.fresh("number")))
        return [loop.with_changes(target=cst.Tuple([number, cst.Element(target)], lpar=[], rpar=[]), iter=source)]


@each_file("loop-zipped")
class Zipped(For):
    """`for x, number in zip(xs, count())`."""

    def rewrite(self, loop: cst.For) -> list[cst.BaseStatement]:
        target = loop.target
        if isinstance(target, cst.Tuple) and not target.lpar:
            target = target.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        self.need("from itertools import count as all_numbers")
        source = cst.Call(cst.Name("zip"), [cst.Arg(loop.iter), cst.Arg(cst.parse_expression("all_numbers()"))])
        number = cst.Element(cst.Name(self.fresh("number")))
        return [loop.with_changes(target=cst.Tuple([cst.Element(target), number], lpar=[], rpar=[]), iter=source)]


@each_file("loop-to-comprehension")
class LoopToComprehension(For):
    """A loop whose body is one call as a list that nobody keeps."""

    def rewrite(self, loop: cst.For) -> list[cst.BaseStatement]:
        only = loop.body.body[0] if len(loop.body.body) == 1 else None
        call = only.body[0] if isinstance(only, cst.SimpleStatementLine) and len(only.body) == 1 else None
        bound = {each.value for each in walk(loop.target) if isinstance(each, cst.Name)}
        used_after = self.function is None or self._uses(bound, loop)
        if not isinstance(call, cst.Expr) or not isinstance(call.value, cst.Call) or used_after:
            return []
        if has(call, cst.Yield, cst.Await, cst.NamedExpr):
            return []
        new = statement(f"[{{c}} for {code(loop.target)} in {{s}}]", c=call.value, s=loop.iter)
        return [with_mark(with_mark(new, loop), only)]

    def _uses(self, names: set[str], loop: cst.For) -> bool:
        """Whether the function uses names of the loop outside of it."""
        return occurrences(self.function, names) != occurrences(loop, names)


def occurrences(node: cst.CSTNode | None, names: set[str]) -> int:
    """How often some names stand in a node."""
    inside = walk(node) if node else ()
    return sum(isinstance(each, cst.Name) and each.value in names for each in inside)


@each_file("comprehension-to-loop")
class ComprehensionToLoop(Edit):
    """`ys = [f(x) for x in xs]` as a loop that appends."""

    number = 0

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        only = updated.body[0] if len(updated.body) == 1 else None
        if not isinstance(only, (cst.Assign, cst.Return)) or not isinstance(only.value, cst.ListComp):
            return updated
        made = only.value
        if self.function is None or made.for_in.asynchronous or has(made, cst.Await):
            return updated
        self.number += 1
        rows = f"rows_{self.number}"
        # A comprehension has a scope of its own: its names must mean nothing else in the function.
        bound = [each for part in walk(made) if isinstance(part, cst.CompFor) for each in walk(part.target)]
        names = {each.value for each in bound if isinstance(each, cst.Name)}
        inside = [each for each in walk(made) if isinstance(each, cst.Name) and each.value in names]
        everywhere = [each for each in walk(self.function) if isinstance(each, cst.Name) and each.value in names]
        if len(inside) != len(everywhere) or has(made.elt, cst.ListComp, cst.Lambda):
            return updated
        body: cst.BaseStatement = statement(f"{rows}.append({{e}})", e=made.elt)
        loops = [each for each in _nested(made.for_in)]
        for part in reversed(loops):
            for test in reversed(part.ifs):
                body = cst.If(test=test.test, body=cst.IndentedBlock([body]))
            body = cst.For(target=part.target, iter=part.iter, body=cst.IndentedBlock([body]))
        last = only.with_changes(value=cst.Name(rows))
        return lines(updated, statement(f"{rows} = []"), body, cst.SimpleStatementLine([last]))


def _nested(part: cst.CompFor | None) -> list[cst.CompFor]:
    return [part, *_nested(part.inner_for_in)] if part else []
