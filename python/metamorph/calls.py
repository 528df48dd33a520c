"""How a call hands over its arguments."""

from __future__ import annotations

import libcst as cst

from .registry import each_file
from .tree import Edit, Facts, named, parameters


def plain_parameters(facts: Facts, call: cst.Call) -> list[str] | None:
    """Names of the parameters of the one function of the project that is called, without `self`."""
    function = facts.functions.get(callee(facts, call) or "", [])
    if len(function) != 1 or function[0].decorators:
        return None
    given = function[0].params
    if given.posonly_params or given.kwonly_params or not isinstance(given.star_arg, cst.MaybeSentinel):
        return None
    if given.star_kwarg:
        return None
    names = [each.name.value for each in parameters(function[0])]
    return names[1:] if names[:1] == ["self"] else names


def callee(facts: Facts, call: cst.Call) -> str | None:
    """The name of the project's function that is called for sure."""
    name = named(call.func)
    if name and name in facts.functions and name not in facts.classes:
        function = facts.functions[name]
        is_method = any(each.name.value == "self" for one in function for each in one.params.params)
        assigned = any("other" in kinds - {"same"} and key[1] == name for key, kinds in facts.kinds.items())
        return None if is_method or _rebound(facts, name, assigned) else name
    if isinstance(call.func, cst.Attribute) and named(call.func.value) == "self":
        method = call.func.attr.value
        function = facts.functions.get(method, [])
        return method if function and function[0].params.params[:1] and method not in facts.field_kinds else None
    return None


def _rebound(facts: Facts, name: str, assigned: bool) -> bool:
    """Whether a name means something else anywhere: bound more often than it is defined."""
    return assigned and sum(key[1] == name for key in facts.kinds) > 1


@each_file("arguments-by-keyword")
class ByKeyword(Edit):
    """`f(a, b)` as `f(x=a, y=b)`."""

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        names = plain_parameters(self.facts, original)
        if names is None or any(each.star for each in updated.args) or len(updated.args) > len(names):
            return updated
        named_args = [
            argument if argument.keyword else argument.with_changes(keyword=cst.Name(name), equal=_EQUAL)
            for argument, name in zip(updated.args, names)
        ]
        return updated.with_changes(args=named_args)


@each_file("arguments-unpacked")
class Unpacked(Edit):
    """`f(a, b)` as `f(*(a, b))`."""

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        names = plain_parameters(self.facts, original)
        if names is None or not updated.args or any(each.star or each.keyword for each in updated.args):
            return updated
        together = cst.Tuple([cst.Element(each.value) for each in updated.args])
        return updated.with_changes(args=[cst.Arg(together, star="*")])


@each_file("arguments-in-dict")
class InDict(Edit):
    """`f(a, b)` as `f(**{"x": a, "y": b})`."""

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        names = plain_parameters(self.facts, original)
        if names is None or not updated.args or any(each.star or each.keyword for each in updated.args):
            return updated
        if len(updated.args) > len(names):
            return updated
        pairs = [cst.DictElement(cst.SimpleString(f'"{name}"'), each.value) for name, each in zip(names, updated.args)]
        return updated.with_changes(args=[cst.Arg(cst.Dict(pairs), star="**")])


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
