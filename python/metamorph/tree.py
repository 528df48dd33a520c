"""Syntax trees for transformations: what a program binds, where, and to what; and how to write statements."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst
from libcst.helpers import parse_template_expression, parse_template_statement

Scope = cst.FunctionDef | cst.Lambda | cst.Module | cst.ClassDef
IDLE = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Comma, cst.AssignEqual, cst.Dot)
"""What no transformation looks at."""
KEPT = ("append", "add", "appendleft", "put", "extend", "update", "insert", "setdefault")


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> cst.Module:
    """The tree of a text."""
    return cst.parse_module(text)


def expression(text: str, **parts: cst.CSTNode) -> cst.BaseExpression:
    """An expression from a template."""
    return parse_template_expression(text, **parts)


def statement(text: str, **parts: cst.CSTNode) -> cst.BaseStatement:
    """A statement from a template."""
    return parse_template_statement(text, **parts)


def small(text: str, **parts: cst.CSTNode) -> cst.BaseSmallStatement:
    """A statement of one line from a template, without its line."""
    line = statement(text, **parts)
    return cst.ensure_type(line, cst.SimpleStatementLine).body[0]


def code(node: cst.CSTNode) -> str:
    """The text of a node."""
    return cst.Module(body=()).code_for_node(node)


def named(node: cst.CSTNode | None) -> str | None:
    """The name that an expression is, if it is one."""
    return node.value if isinstance(node, cst.Name) else None


def field_of_self(node: cst.CSTNode | None) -> str | None:
    """`x` of `self.x`."""
    if isinstance(node, cst.Attribute) and named(node.value) == "self":
        return node.attr.value
    return None


@functools.cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """Names of a kind's fields that hold no white space, comma or parenthesis."""
    names = [field.name for field in dataclasses.fields(kind)]
    idle = ("whitespace", "lpar", "rpar", "comma", "semicolon", "leading_lines", "lines_after", "header", "footer")
    return tuple(name for name in names if not name.startswith(idle))


def children(node: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """The nodes below one, each with the name of its field; white space is left out."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield name, value
        elif isinstance(value, (list, tuple)):
            yield from ((name, each) for each in value if isinstance(each, cst.CSTNode))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything in it, in order."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        todo.extend(reversed([child for _, child in children(each)]))


@functools.lru_cache(maxsize=20_000)
def within(node: cst.CSTNode, *, enter: bool = False) -> tuple[cst.CSTNode, ...]:
    """Everything in a node's own scope: nested functions and classes are given and, unless `enter`, not entered."""
    found: list[cst.CSTNode] = []
    for _, child in children(node):
        found.append(child)
        if enter or not isinstance(child, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            found.extend(within(child, enter=enter))
    return tuple(found)


def has(node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> bool:
    """Whether a node of one of these kinds is in it."""
    return any(isinstance(each, kinds) for each in walk(node))


def is_plain(node: cst.BaseExpression) -> bool:
    """Whether it may be evaluated elsewhere, and as often as one likes: names, attributes, constants."""
    if isinstance(node, cst.Attribute):
        return is_plain(node.value)
    return isinstance(node, (cst.Name, cst.Integer, cst.SimpleString))


def can_move(node: cst.CSTNode) -> bool:
    """Whether an expression may be an argument of a call in another place of the same function."""
    return not has(node, cst.Yield, cst.Await, cst.NamedExpr, cst.StarredElement) and not isinstance(
        node, cst.GeneratorExp
    )


def names_in(target: cst.CSTNode) -> Iterator[str]:
    """Names that a target binds."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from names_in(element.value)


def parameters(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """All parameters in order."""
    given = function.params
    stars = [each for each in (given.star_arg, given.star_kwarg) if isinstance(each, cst.Param)]
    return [*given.posonly_params, *given.params, *given.kwonly_params, *stars]


def bound(scope: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode | None]]:
    """Names that a scope binds, each with the value if it is assigned one."""
    if isinstance(scope, (cst.FunctionDef, cst.Lambda)):
        for parameter in parameters(scope):
            yield parameter.name.value, None
    body = scope.body if isinstance(scope, (cst.FunctionDef, cst.ClassDef, cst.Lambda)) else scope
    inner = [body, *within(body)] if isinstance(scope, cst.Lambda) else within(body)
    for node in inner:
        yield from _binds(node)


def _binds(node: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode | None]]:
    if isinstance(node, cst.Assign):
        for target in node.targets:
            single = isinstance(target.target, cst.Name)
            yield from ((name, node.value if single else None) for name in names_in(target.target))
    elif isinstance(node, cst.AnnAssign):
        yield from ((name, node.value) for name in names_in(node.target) if node.value)
    elif isinstance(node, cst.AugAssign):
        yield from ((name, node) for name in names_in(node.target))
    elif isinstance(node, (cst.For, cst.CompFor, cst.NamedExpr)):
        yield from ((name, None) for name in names_in(node.target))
    elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        yield node.name.value, node
    elif isinstance(node, cst.AsName):
        yield from ((name, None) for name in names_in(node.name))
    elif isinstance(node, (cst.Import, cst.ImportFrom)) and not isinstance(node.names, cst.ImportStar):
        yield from ((code(alias.name).split(".")[0], None) for alias in node.names if not alias.asname)


@functools.lru_cache(maxsize=4096)
def outer_names(function: cst.FunctionDef | cst.Lambda) -> frozenset[str]:
    """Names that a function declares `global` or `nonlocal`."""
    declared = (node for node in within(function.body) if isinstance(node, (cst.Global, cst.Nonlocal)))
    return frozenset(item.name.value for node in declared for item in node.names)


def kind_of(value: cst.CSTNode | None) -> str:
    """`list`, `dict` or `number` for what an empty one is made by; else `other`."""
    if isinstance(value, cst.List):
        return "list"
    if isinstance(value, cst.Dict):
        return "dict"
    if isinstance(value, (cst.Integer, cst.Float)):
        return "number"
    if isinstance(value, cst.Call) and not value.args and named(value.func) in ("list", "dict"):
        return str(named(value.func))
    return "same" if isinstance(value, cst.AugAssign) else "other"


class Facts:
    """What a program binds, read once for all of its files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.modules = {path: parse(text) for path, text in files.items()}
        self.kinds: dict[tuple[int, str], set[str]] = defaultdict(set)
        self.field_kinds: dict[str, set[str]] = defaultdict(set)
        self.keywords: set[str] = set()
        self.strings: set[str] = set()
        self.functions: dict[str, list[cst.FunctionDef]] = defaultdict(list)
        self.classes: dict[str, list[cst.ClassDef]] = defaultdict(list)
        self.attributes: dict[str, list[str | None]] = defaultdict(list)
        self.identifiers: set[str] = set()
        for module in self.modules.values():
            self._read(module)

    def _read(self, module: cst.Module) -> None:
        for node in walk(module):
            if isinstance(node, (cst.Module, cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                for name, value in bound(node):
                    self.kinds[id(node), name].add(kind_of(value))
            if isinstance(node, (cst.Assign, cst.AnnAssign)):
                targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, cst.Attribute):
                        self.field_kinds[target.attr.value].add(kind_of(node.value))
                    for inner in target.elements if isinstance(target, cst.Tuple) else ():
                        if isinstance(inner.value, cst.Attribute):
                            self.field_kinds[inner.value.attr.value].add("other")
            elif isinstance(node, cst.Arg) and node.keyword:
                self.keywords.add(node.keyword.value)
            elif isinstance(node, cst.SimpleString):
                self.strings.add(node.value.strip("rbfu\"'"))
            elif isinstance(node, cst.FunctionDef):
                self.functions[node.name.value].append(node)
            elif isinstance(node, cst.ClassDef):
                self.classes[node.name.value].append(node)
            elif isinstance(node, cst.Attribute):
                self.attributes[node.attr.value].append(named(node.value))
            elif isinstance(node, cst.Name):
                self.identifiers.add(node.value)


class Edit(cst.CSTTransformer):
    """A transformation of one file that knows in which functions and classes it is."""

    def __init__(self, facts: Facts, module: cst.Module) -> None:
        super().__init__()
        self.facts, self.module = facts, module
        self.stack: list[cst.CSTNode] = [module]
        self.header: dict[str, None] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, IDLE):
            return False
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            self.stack.append(node)
        return super().on_visit(node)

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> object:
        result = super().on_leave(original, updated)
        if self.stack[-1] is original and not isinstance(original, cst.Module):
            self.stack.pop()
        return result

    @property
    def function(self) -> cst.FunctionDef | None:
        """The innermost function, if its own statements are being visited."""
        return self.stack[-1] if isinstance(self.stack[-1], cst.FunctionDef) else None

    @property
    def in_class(self) -> cst.ClassDef | None:
        """The class whose body is being visited."""
        return self.stack[-1] if isinstance(self.stack[-1], cst.ClassDef) else None

    def owner(self, name: str) -> cst.CSTNode | None:
        """The scope that a name in the current one belongs to."""
        for scope in reversed(self.stack):
            if isinstance(scope, cst.ClassDef) and scope is not self.stack[-1]:
                continue
            if isinstance(scope, cst.FunctionDef) and name in outer_names(scope):
                continue
            if (id(scope), name) in self.facts.kinds:
                return scope
        return None

    def is_local(self, name: str) -> bool:
        """Whether the current function binds a name itself."""
        return isinstance(self.stack[-1], cst.FunctionDef) and self.owner(name) is self.stack[-1]

    def kind(self, node: cst.CSTNode) -> str | None:
        """What a container is made as, if everywhere the same."""
        if field := field_of_self(node):
            kinds = self.facts.field_kinds.get(field, set())
        elif (name := named(node)) and (owner := self.owner(name)):
            kinds = self.facts.kinds[id(owner), name]
        else:
            return None
        kinds = kinds - {"same"}
        return next(iter(kinds)) if len(kinds) == 1 else None

    def need(self, text: str) -> None:
        """Puts statements at the top of the file, once."""
        self.header[text] = None

    def run(self) -> cst.Module:
        """The file after the transformation."""
        module = self.module.visit(self)
        return on_top(module, self.header)


def on_top(module: cst.Module, texts: Iterable[str]) -> cst.Module:
    """Puts statements after the docstring and what must come first."""
    new = [line for text in texts for line in cst.parse_module(text).body]
    if not new:
        return module
    at = 0
    for number, line in enumerate(module.body):
        first = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        is_doc = number == 0 and isinstance(first, cst.Expr) and isinstance(first.value, cst.SimpleString)
        is_future = isinstance(first, cst.ImportFrom) and named(first.module) == "__future__"
        if is_doc or is_future:
            at = number + 1
    return module.with_changes(body=[*module.body[:at], *new, *module.body[at:]])


def mark_of(line: cst.CSTNode) -> str:
    """The mark of a line, as it is written."""
    trailing = getattr(line, "trailing_whitespace", None) or getattr(getattr(line, "body", None), "header", None)
    comment = trailing.comment if isinstance(trailing, cst.TrailingWhitespace) else None
    return f"  {comment.value}" if comment and comment.value.startswith("#@") else ""


def lines(original: cst.SimpleStatementLine, *new: cst.BaseStatement) -> cst.FlattenSentinel[cst.BaseStatement]:
    """Statements in place of a line: each has its mark, and the first its comments."""
    marked = [with_mark(each, original) for each in new]
    marked[0] = marked[0].with_changes(leading_lines=original.leading_lines)
    return cst.FlattenSentinel(marked)


def with_mark(new: cst.BaseStatement, original: cst.CSTNode) -> cst.BaseStatement:
    """A statement with the mark of another; a block has it on its own lines, too."""
    text = mark_of(original).strip()
    if not text:
        return new
    white = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(text))
    if isinstance(new, cst.SimpleStatementLine):
        return new.with_changes(trailing_whitespace=white)
    body = getattr(new, "body", None)
    if isinstance(body, cst.IndentedBlock):
        inner = [with_mark(each, original) for each in body.body]
        return new.with_changes(body=body.with_changes(header=white, body=inner))
    return new


def block(body: Sequence[cst.BaseStatement]) -> cst.IndentedBlock:
    """An indented block."""
    return cst.IndentedBlock(body=list(body))
