"""What a container is: a list, a deque, a dict with numbers as keys, a dict of lists, a part of something else."""

from __future__ import annotations

from typing import ClassVar

import libcst as cst

from .lists import Kept, is_empty
from .registry import each_file
from .tree import Edit, expression, named


class Lists(Kept):
    """Replaces such lists, and each of their uses."""

    made: ClassVar[str]
    """What is made instead of an empty list."""
    used: ClassVar[str | None] = None
    """What a use is written as, if every use is as good as any."""
    top: ClassVar[str] = ""
    """What the file needs."""

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign:
        targets = [each.target for each in original.targets]
        if not all(self.is_kept(each) for each in targets) or not is_empty(original.value):
            return updated
        if self.top:
            self.need(self.top)
        kept = [each for each in original.targets]
        return updated.with_changes(targets=kept, value=cst.parse_expression(self.made))

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression:
        return self._use(original, updated)

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression:
        return self._use(original, updated)

    def _use(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        if self.used and self.is_read(original) and self.is_kept(original):
            return expression(self.used, xs=original)
        return updated


@each_file("list-to-deque")
class ToDeque(Lists):
    """`deque()` for a list that is appended to, cleared, measured, gone through."""

    made = "deque_of_all()"
    top = "from collections import deque as deque_of_all"

    def allows(self, use: cst.CSTNode, parent: cst.CSTNode, above: cst.CSTNode) -> bool:
        if isinstance(parent, cst.Attribute):
            return parent.attr.value in ("append", "extend", "clear", "count")
        if isinstance(parent, cst.For):
            return parent.iter is use
        takes = ("len", "sum", "max", "min", "enumerate", "sorted", "list", "tuple")
        if isinstance(parent, cst.Arg) and isinstance(above, cst.Call):
            return named(above.func) in takes and len(above.args) == 1
        return isinstance(parent, (cst.CompFor, cst.If, cst.UnaryOperation))


@each_file("list-to-dict-of-lists")
class ToSetdefault(Lists):
    """`xs.setdefault("all", [])` of a dict in place of a list."""

    made = "{}"
    used = '{xs}.setdefault("all", [])'


@each_file("list-to-defaultdict")
class ToDefaultdict(Lists):
    """`xs["all"]` of a dict of lists in place of a list."""

    made = "lists_by_name(list)"
    used = '{xs}["all"]'
    top = "from collections import defaultdict as lists_by_name"


@each_file("list-to-numbered-dict")
class ToNumbered(Kept):
    """`xs[len(xs)] = v` of a dict in place of `xs.append(v)`, for lists that are only appended to and measured."""

    def allows(self, use: cst.CSTNode, parent: cst.CSTNode, above: cst.CSTNode) -> bool:
        if isinstance(parent, cst.Attribute):
            return parent.attr.value in ("append", "clear")
        if isinstance(parent, cst.For):
            return parent.iter is use
        if isinstance(parent, cst.Arg) and isinstance(above, cst.Call):
            return named(above.func) in ("len", "sum", "max", "min") and len(above.args) == 1
        return isinstance(parent, cst.If)

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign:
        if all(self.is_kept(each.target) for each in original.targets) and is_empty(original.value):
            return updated.with_changes(value=cst.Dict([]))
        return updated

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For:
        if self.is_kept(original.iter):
            return updated.with_changes(iter=expression("{xs}.values()", xs=original.iter))
        return updated

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        if len(original.args) == 1 and self.is_kept(original.args[0].value) and named(original.func) != "len":
            value = expression("{xs}.values()", xs=original.args[0].value)
            return updated.with_changes(args=[cst.Arg(value)])
        if isinstance(original.func, cst.Attribute) and self.is_kept(original.func.value):
            if original.func.attr.value == "append":
                return expression("{xs}.__setitem__(len({xs}), {v})", xs=original.func.value, v=updated.args[0].value)
        return updated

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement:
        call = updated.value
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and len(call.args) == 2:
            if call.func.attr.value == "__setitem__":
                target = cst.Subscript(call.func.value, [cst.SubscriptElement(cst.Index(call.args[0].value))])
                return cst.Assign([cst.AssignTarget(target)], call.args[1].value)
        return updated


@each_file("display-to-call")
class DisplayToCall(Edit):
    """`list()` and `dict()` for `[]` and `{}`."""

    def leave_List(self, original: cst.List, updated: cst.List) -> cst.BaseExpression:
        return updated if updated.elements else cst.parse_expression("list()")

    def leave_Dict(self, original: cst.Dict, updated: cst.Dict) -> cst.BaseExpression:
        return updated if updated.elements else cst.parse_expression("dict()")


@each_file("list-in-dict")
class InDict(Lists):
    """A list under a name in a dict."""

    made = '{"rows": []}'
    used = '{xs}["rows"]'


@each_file("list-in-list")
class InList(Lists):
    """A list in a list of one."""

    made = "[[]]"
    used = "{xs}[0]"


@each_file("list-in-object")
class InObject(Lists):
    """A list as the attribute of an object."""

    made = "Shelf()"
    used = "{xs}.rows"
    top = "class Shelf:\n    def __init__(self):\n        self.rows = []\n"


@each_file("list-in-dataclass")
class InDataclass(Lists):
    """A list as the field of a dataclass."""

    made = "Ledger()"
    used = "{xs}.rows"
    top = (
        "from dataclasses import dataclass as as_data, field as as_field\n\n\n"
        "@as_data\nclass Ledger:\n    rows: list = as_field(default_factory=list)\n"
    )


@each_file("list-in-namedtuple")
class InNamedtuple(Lists):
    """A list in a named tuple."""

    made = "Tray([])"
    used = "{xs}.rows"
    top = 'from collections import namedtuple as with_names\n\nTray = with_names("Tray", "rows")\n'
