"""Attributes of an object in a dict or an object of their own, and globals in a class."""

from __future__ import annotations

from typing import ClassVar

import libcst as cst

from .registry import each_file
from .tree import Edit, Facts, expression, field_of_self, named, statement, walk, within

CONTAINERS = {"list", "dict", "number"}


def own_fields(facts: Facts, kind: cst.ClassDef) -> set[str]:
    """Attributes of a class that `__init__` makes as containers or numbers, and that nobody else reaches."""
    start = constructor(kind)
    if start is None:
        return set()
    made = {field_of_self(each.target) for each in within(start.body) if isinstance(each, cst.AssignTarget)}
    here = [each.attr.value for each in walk(kind) if isinstance(each, cst.Attribute)]
    reached = {
        name
        for name in made - {None}
        if set(facts.attributes[name]) == {"self"} and len(facts.attributes[name]) == here.count(name)
    }
    return {name for name in reached if facts.field_kinds[name] <= CONTAINERS and name not in facts.strings}


def constructor(kind: cst.ClassDef) -> cst.FunctionDef | None:
    """`__init__` of a class."""
    methods = (each for each in kind.body.body if isinstance(each, cst.FunctionDef))
    return next((each for each in methods if each.name.value == "__init__"), None)


class Fields(Edit):
    """Moves attributes behind another one."""

    made: ClassVar[str]
    used: ClassVar[str]
    top: ClassVar[str] = ""

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression:
        kind = self._class()
        field = field_of_self(original)
        if kind is None or field is None or field not in own_fields(self.facts, kind):
            return updated
        return cst.parse_expression(self.used.replace("FIELD", field))

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef:
        fields = own_fields(self.facts, original)
        if not fields:
            return updated
        if self.top:
            self.need(self.top)
        start = constructor(updated)
        made = statement(f"self.state_of_it = {self.made}")
        new = start.with_changes(body=start.body.with_changes(body=[made, *start.body.body]))
        body = [new if each is start else each for each in updated.body.body]
        return updated.with_changes(body=updated.body.with_changes(body=body))

    def _class(self) -> cst.ClassDef | None:
        """The class whose method is being visited."""
        return next((each for each in reversed(self.stack) if isinstance(each, cst.ClassDef)), None)


@each_file("attribute-to-dict")
class ToDict(Fields):
    """`self.state["rows"]` for `self.rows`."""

    made = "{}"
    used = 'self.state_of_it["FIELD"]'


@each_file("attribute-to-object")
class ToObject(Fields):
    """`self.state.rows` for `self.rows`."""

    made = "Part()"
    used = "self.state_of_it.FIELD"
    top = "class Part:\n    pass\n"


@each_file("attribute-by-property")
class ByProperty(Edit):
    """`self.rows` by a property; the value is under another name."""

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression:
        function = self.stack[-1]
        is_start = isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
        kind = next((each for each in reversed(self.stack) if isinstance(each, cst.ClassDef)), None)
        if not is_start or kind is None or field_of_self(original) not in self._lists(kind):
            return updated
        return updated.with_changes(attr=cst.Name(f"own_{original.attr.value}"))

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef:
        fields = sorted(self._lists(original))
        made = [
            statement(f"@property\ndef {name}(self):\n    return self.own_{name}\n").with_changes(
                leading_lines=[cst.EmptyLine(indent=False)]
            )
            for name in fields
        ]
        return (
            updated.with_changes(body=updated.body.with_changes(body=[*updated.body.body, *made])) if made else updated
        )

    def _lists(self, kind: cst.ClassDef) -> set[str]:
        """Fields that nothing but `__init__` assigns."""
        start = constructor(kind)
        fields = {name for name in own_fields(self.facts, kind) if self.facts.field_kinds[name] <= {"list", "dict"}}
        assigned = [
            field_of_self(each.target)
            for each in walk(kind)
            if isinstance(each, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
        ]
        inside = (
            [field_of_self(each.target) for each in walk(start) if isinstance(each, cst.AssignTarget)] if start else []
        )
        return {name for name in fields if assigned.count(name) == inside.count(name) == 1}


@each_file("globals-in-class")
class InClass(Edit):
    """Containers of the file as attributes of a class."""

    def _globals(self) -> set[str]:
        if len(self.facts.modules) > 1:
            return set()
        names = {
            name
            for (scope, name), kinds in self.facts.kinds.items()
            if scope == id(self.module) and kinds <= {"list", "dict"}
        }
        elsewhere = {name for (scope, name) in self.facts.kinds if scope != id(self.module)}
        return {
            name for name in names - elsewhere if name not in self.facts.strings and name not in self.facts.keywords
        }

    def leave_Global(self, original: cst.Global, updated: cst.Global) -> cst.BaseSmallStatement:
        rest = [each for each in updated.names if named(each.name) not in self._globals()]
        if not rest:
            return cst.Pass()
        return updated.with_changes(names=[each.with_changes(comma=cst.MaybeSentinel.DEFAULT) for each in rest])

    def leave_NameItem(self, original: cst.NameItem, updated: cst.NameItem) -> cst.NameItem:
        return original

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.Attribute:
        return updated.with_changes(attr=original.attr)

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg:
        return updated.with_changes(keyword=original.keyword)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression:
        if original.value not in self._globals():
            return updated
        self.need("class Everywhere:\n    pass\n")
        return expression(f"Everywhere.{original.value}")
