"""One more layer around calls, loops and functions: a helper, a closure, a partial, a decorator, a generator ..."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from .registry import each_file
from .tree import Edit, can_move, code, has, is_plain, lines, mark_of, statement


class Calls(Edit):
    """Rewrites lines that are a method call with one value that it keeps: `rows.append(x)`, `cache.update(y)`."""

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        only = updated.body[0] if len(updated.body) == 1 else None
        call = only.value if isinstance(only, cst.Expr) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
            return updated
        argument = call.args[0]
        if argument.star or argument.keyword or not is_plain(call.func.value) or not can_move(argument.value):
            return updated
        if code(call.func.value).split(".")[0] in ("torch", "np", "plt", "nn", "super"):
            return updated
        return lines(updated, *self.rewrite(updated, call.func, argument.value))

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        """Statements in place of `method(value)`."""
        raise NotImplementedError


@each_file("call-in-helper")
class Helper(Calls):
    """`rows.append(x)` as `pass_append(rows, x)`, a function of this file."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        name = f"pass_{method.attr.value}_{len(self.header) + 1}"
        self.need(f"def {name}(place, thing):\n    place.{method.attr.value}(thing){mark_of(line)}\n")
        return [statement(f"{name}({{r}}, {{v}})", r=method.value, v=value)]


@each_file("call-in-closure")
class Closure(Calls):
    """`rows.append(x)` in a function that is made beside it."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        made = statement("def hand_over(thing):\n    {m}(thing)\n", m=method)
        return [made, statement("hand_over({v})", v=value)]


@each_file("call-by-partial")
class Partial(Calls):
    """`partial(rows.append, x)()`."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        self.need("from functools import partial as bind_first")
        return [statement("bind_first({m}, {v})()", m=method, v=value)]


@each_file("call-by-bound-method")
class BoundMethod(Calls):
    """`put = rows.append` and `put(x)`."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        return [statement("put_there = {m}", m=method), statement("put_there({v})", v=value)]


@each_file("call-by-getattr")
class ByName(Calls):
    """`getattr(rows, "append")(x)`."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        return [statement(f'getattr({{r}}, "{method.attr.value}")({{v}})', r=method.value, v=value)]


@each_file("call-by-lambda")
class ByLambda(Calls):
    """`(lambda thing: rows.append(thing))(x)`."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        return [statement("(lambda thing: {m}(thing))({v})", m=method, v=value)]


@each_file("call-by-registry")
class Registry(Calls):
    """`rows.append(x)` by callbacks that a list of this file has."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        name = f"on_{method.attr.value}_{len(self.header) + 1}"
        self.need(
            f"def {name}(place, thing):\n    place.{method.attr.value}(thing){mark_of(line)}\n\n\n"
            f"{name.upper()} = [{name}]\n"
        )
        return [statement(f"for react in {name.upper()}:\n    react({{r}}, {{v}})\n", r=method.value, v=value)]


@each_file("receiver-alias")
class Alias(Calls):
    """`place = rows` and `place.append(x)`."""

    def rewrite(
        self, line: cst.SimpleStatementLine, method: cst.Attribute, value: cst.BaseExpression
    ) -> Sequence[cst.BaseStatement]:
        kept = method.with_changes(value=cst.Name("place_of_it"))
        return [statement("place_of_it = {r}", r=method.value), statement("{m}({v})", m=kept, v=value)]


@each_file("functions-decorated")
class Decorated(Edit):
    """A decorator around each function of the file that only hands on."""

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
        if len(self.stack) > 2 or updated.decorators or updated.asynchronous:
            return updated
        self.need(
            "from functools import wraps as dressed_as\n\n\n"
            "def noted(function):\n"
            "    @dressed_as(function)\n"
            "    def inner(*words, **settings):\n"
            "        return function(*words, **settings)\n\n"
            "    return inner\n"
        )
        return updated.with_changes(decorators=[cst.Decorator(cst.Name("noted"))])


class LoopBodies(Edit):
    """Puts a block around the body of each loop."""

    def around(self, body: cst.IndentedBlock) -> cst.BaseStatement:
        """The block."""
        raise NotImplementedError

    def _leave(self, updated: cst.For | cst.While) -> cst.For | cst.While:
        if not isinstance(updated.body, cst.IndentedBlock):
            return updated
        inner = self.around(updated.body.with_changes(header=cst.TrailingWhitespace()))
        return updated.with_changes(body=updated.body.with_changes(body=[inner], footer=[]))

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | cst.While:
        return self._leave(updated)

    def leave_While(self, original: cst.While, updated: cst.While) -> cst.For | cst.While:
        return self._leave(updated)


@each_file("body-in-context-manager")
class InContext(LoopBodies):
    """`with section():` around the body of each loop."""

    def around(self, body: cst.IndentedBlock) -> cst.BaseStatement:
        self.need("from contextlib import contextmanager as as_context\n\n\n@as_context\ndef section():\n    yield\n")
        return cst.With(items=[cst.WithItem(cst.Call(cst.Name("section")))], body=body)


@each_file("body-in-try")
class InTry(LoopBodies):
    """`try: ... finally: pass` around the body of each loop."""

    def around(self, body: cst.IndentedBlock) -> cst.BaseStatement:
        return cst.Try(body=body, finalbody=cst.Finally(cst.IndentedBlock([statement("pass")])))


class LoopSources(Edit):
    """Puts a call around what each `for` iterates over."""

    name: str
    helper: str

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For:
        if updated.asynchronous:
            return updated
        self.need(self.helper)
        iterable = updated.iter
        if has(iterable, cst.Yield, cst.NamedExpr):
            return updated
        if isinstance(iterable, cst.Tuple) and not iterable.lpar:
            iterable = iterable.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return updated.with_changes(iter=cst.Call(cst.Name(self.name), [cst.Arg(iterable)]))


@each_file("loop-over-generator")
class OverGenerator(LoopSources):
    """Each `for` takes its items from a generator function."""

    name = "one_by_one"
    helper = "def one_by_one(things):\n    for thing in things:\n        yield thing\n"


@each_file("loop-over-object")
class OverObject(LoopSources):
    """Each `for` takes its items from an object with `__iter__`."""

    name = "InTurn"
    helper = (
        "class InTurn:\n    def __init__(self, things):\n        self.things = things\n\n"
        "    def __iter__(self):\n        return iter(self.things)\n"
    )


@each_file("loop-over-map")
class OverMap(LoopSources):
    """Each `for` takes its items from `map`."""

    name = "mapped"
    helper = "def mapped(things):\n    return map(lambda thing: thing, things)\n"


@each_file("functions-as-objects")
class CallableObject(Edit):
    """A function of the file as an object with `__call__`."""

    def leave_FunctionDef(
        self, original: cst.FunctionDef, updated: cst.FunctionDef
    ) -> cst.FunctionDef | cst.FlattenSentinel[cst.BaseStatement]:
        name = updated.name.value
        taken = any(parameter.name.value == "self" for parameter in updated.params.params)
        if len(self.stack) > 2 or updated.decorators or updated.asynchronous or taken or name == "__getattr__":
            return updated
        params = updated.params
        me = cst.Param(cst.Name("self"))
        if params.posonly_params:
            params = params.with_changes(posonly_params=[me, *params.posonly_params])
        else:
            params = params.with_changes(params=[me, *params.params])
        method = updated.with_changes(name=cst.Name("__call__"), params=params, leading_lines=[])
        kind = cst.ClassDef(
            cst.Name(f"Doing_{name}"), cst.IndentedBlock([method]), leading_lines=original.leading_lines
        )
        return cst.FlattenSentinel([kind, statement(f"{name} = Doing_{name}()")])
