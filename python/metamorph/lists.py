"""Which lists of a program can be something else: made empty, assigned nothing else, used in ways that bear it."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from .tree import Edit, Facts, children, field_of_self, named, walk

Allows = Callable[[cst.CSTNode, cst.CSTNode, cst.CSTNode], bool]
"""Whether a use of a list, below a node and another above that, bears another container."""


def is_empty(value: cst.CSTNode | None) -> bool:
    """Whether it makes an empty list."""
    if isinstance(value, cst.Call):
        return named(value.func) == "list" and not value.args
    return isinstance(value, cst.List) and not value.elements


class Kept(Edit):
    """Edits lists of an attribute or a variable that are only ever made empty."""

    def __init__(self, facts: Facts, module: cst.Module) -> None:
        super().__init__(facts, module)
        self._chosen = Chooser(facts, module, self.allows).chosen()
        self._reads = {id(each) for each in reads(module)}

    def allows(self, use: cst.CSTNode, parent: cst.CSTNode, above: cst.CSTNode) -> bool:
        """Whether a use bears the other container."""
        return True

    def is_kept(self, node: cst.CSTNode) -> bool:
        """Whether it is one of the lists."""
        field = field_of_self(node)
        key = field if field else (id(self.owner(str(named(node)))), named(node))
        return self.kind(node) == "list" and key in self._chosen

    def is_read(self, node: cst.CSTNode) -> bool:
        """Whether it is an expression, and not the name of a keyword, an attribute or a parameter."""
        return id(node) in self._reads


def reads(module: cst.Module) -> list[cst.CSTNode]:
    """Names and attributes where a value is read."""
    skipped = ("keyword", "attr", "name", "names", "asname", "target", "module", "annotation")
    found: list[cst.CSTNode] = []
    for parent in walk(module):
        for field, child in children(parent):
            if isinstance(child, (cst.Name, cst.Attribute)) and field not in skipped:
                found.append(child)
    return found


class Chooser(Edit):
    """Finds the lists of a file that are made empty, assigned nothing else, and used as is allowed."""

    def __init__(self, facts: Facts, module: cst.Module, allows: Allows) -> None:
        super().__init__(facts, module)
        self._allows = allows
        self._made: set[object] = set()
        self._wrong: set[object] = set()
        self._path: list[cst.CSTNode] = []

    def chosen(self) -> set[object]:
        """The keys of the lists."""
        self.module.visit(self)
        return self._made - self._wrong

    def _key(self, node: cst.CSTNode) -> object | None:
        if self.kind(node) != "list":
            return None
        field = field_of_self(node)
        if field:
            # Others may reach the attribute, too.
            return field if set(self.facts.attributes[field]) == {"self"} else None
        owner = self.owner(str(named(node)))
        return (id(owner), named(node)) if isinstance(owner, (cst.FunctionDef, cst.Module)) else None

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Name, cst.Attribute)) and self._path:
            self._meet(node)
        self._path.append(node)
        return super().on_visit(node)

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> object:
        self._path.pop()
        return super().on_leave(original, updated)

    def _meet(self, node: cst.CSTNode) -> None:
        parent, above = self._path[-1], self._path[-2] if len(self._path) > 1 else self._path[-1]
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            return
        if isinstance(parent, (cst.Arg, cst.FunctionDef, cst.Param)) and getattr(parent, "value", None) is not node:
            return
        key = self._key(node)
        if key is None:
            return
        if isinstance(parent, cst.AssignTarget) and isinstance(above, cst.Assign) and is_empty(above.value):
            self._made.add(key)
        elif isinstance(
            parent, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Global, cst.Nonlocal, cst.NameItem)
        ):
            self._wrong.add(key)
        elif isinstance(parent, (cst.Del, cst.ImportAlias)) or not self._allows(node, parent, above):
            self._wrong.add(key)
        elif isinstance(self.owner(str(named(node))), cst.Module) and len(self.facts.modules) > 1:
            self._wrong.add(key)
