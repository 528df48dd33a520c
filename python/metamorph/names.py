"""Other names for what a program itself names."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator

import libcst as cst

from .program import Program
from .registry import facts_of, whole
from .tree import Facts, bound, code, parameters, walk

CONTRACTS = {"self", "cls", "ctx", "batch", "batch_idx", "dataloader_idx", "closure", "main", "_", "args", "kwargs"}
"""Names that a caller outside of the program may know."""

LIBRARIES = {
    name
    for kind in (list, dict, set, str, bytes, tuple, int, float, object, BaseException, type, property)
    for name in dir(kind)
} | set(
    """grad grad_fn data shape dtype device state T H cpu cuda numpy item detach clone mean sum step model fn function
    zero_grad backward parameters eval train forward close flush result submit shutdown start join run put get write
    read send recv name args device_ids optimizer loss log trainer logger hparams module weight bias dataset
    sampler batch_size size dim ndim is_cuda requires_grad buffer buffers save load path target thread process
    handle remove hook callback callbacks metrics history params epoch value values steps max_epochs
    fit validate test predict reset compute acquire release cancel done task tasks queue maxsize maxlen""".split()
)
"""Attributes that objects of libraries may have, too."""

WORDS = {
    "model": "student",
    "net": "pupil",
    "network": "learner",
    "loader": "feed",
    "train_loader": "lessons",
    "val_loader": "exams",
    "dataloader": "supply",
    "optimizer": "tuner",
    "opt": "nudger",
    "loss": "cost",
    "losses": "costs",
    "criterion": "judge",
    "epoch": "lap",
    "epochs": "laps",
    "batch": "handful",
    "history": "diary",
    "total": "amount",
    "running": "amount_so_far",
    "cache": "pantry",
    "hook": "peg",
    "handle": "grip",
}


def words() -> Iterator[str]:
    """Invented words without end."""
    starts, middles, ends = "b d f g k l m n p r s t v z".split(), "a e i o u".split(), "lk rn st mp x nd".split()
    number = 0
    while True:
        first, rest = number % len(starts), number // len(starts)
        second, third = rest % len(middles), rest // len(middles)
        yield starts[first] + middles[second] + ends[third % len(ends)] + ("" if third < len(ends) else str(third))
        number += 1


class Renamer(cst.CSTTransformer):
    """Renames variables and attributes."""

    def __init__(self, variables: dict[str, str], attributes: dict[str, str]) -> None:
        super().__init__()
        self.variables, self.attributes = variables, attributes
        self.depth: list[bool] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.depth.append(True)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth.append(False)

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef:
        self.depth.pop()
        return updated

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
        self.depth.pop()
        if self.depth and self.depth[-1]:
            name = original.name.value
            return updated.with_changes(name=cst.Name(self.attributes.get(name, name)))
        return updated

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.Name:
        return updated.with_changes(value=self.variables.get(original.value, original.value))

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.Attribute:
        name = original.attr.value
        return updated.with_changes(attr=cst.Name(self.attributes.get(name, name)))

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg:
        return updated.with_changes(keyword=original.keyword)

    def leave_ImportAlias(self, original: cst.ImportAlias, updated: cst.ImportAlias) -> cst.ImportAlias:
        return original

    def leave_ImportFrom(self, original: cst.ImportFrom, updated: cst.ImportFrom) -> cst.ImportFrom:
        return original


class Nameable:
    """What of a program may have another name."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.imported: set[str] = set()
        self.in_classes: set[str] = set()
        self.fixed: set[str] = set()
        self.fixed_methods: set[str] = set()
        self.methods: set[str] = set()
        for module in facts.modules.values():
            for node in walk(module):
                self._read(node)

    def _read(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.ImportAlias):
            self.imported |= {code(node.name).split(".")[0], *code(node.name).split(".")}
            self.imported |= (
                {node.asname.name.value} if node.asname and isinstance(node.asname.name, cst.Name) else set()
            )
        elif isinstance(node, cst.ClassDef):
            inside = {name for name, _ in bound(node)}
            self.in_classes |= inside
            own = all(code(base.value) in self.facts.classes for base in node.bases) and not node.decorators
            given = {each.name.value for each in node.body.body if isinstance(each, cst.FunctionDef)}
            (self.methods if own else self.fixed_methods).update(given)
            self.fixed_methods |= inside - given
        elif isinstance(node, (cst.FunctionDef, cst.Lambda)):
            given = {each.name.value for each in parameters(node)}
            self.fixed |= given & (self.facts.keywords | CONTRACTS)
        elif isinstance(node, (cst.FormattedStringExpression, cst.NameItem)):
            pass

    def variables(self) -> list[str]:
        """Names of variables, functions and classes, in order."""
        every = {name for _, name in self.facts.kinds}
        taken = self.imported | self.in_classes | self.fixed | CONTRACTS | set(dir(builtins)) | self.facts.strings
        names = every - taken - self.facts.keywords
        return sorted(name for name in names if not name.startswith("__"))

    def attributes(self) -> list[str]:
        """Names of attributes and methods, in order."""
        fields = {name for name in self.facts.field_kinds if set(self.facts.attributes[name]) <= {"self"}}
        methods = {name for name in self.methods if not name.startswith("__")}
        taken = self.fixed_methods | LIBRARIES | self.facts.strings | self.facts.keywords | self.imported
        names = (fields | methods) - taken
        return sorted(name for name in names if not name.startswith("__"))


def rename(program: Program, new: Callable[[str], str | None]) -> Program:
    """Renames what may have another name; `new` gives it, or nothing."""
    facts = facts_of(program)
    nameable = Nameable(facts)
    taken = facts.identifiers | set(facts.attributes) | set(facts.field_kinds)

    def chosen(names: list[str]) -> dict[str, str]:
        pairs = ((name, new(name)) for name in names)
        return {name: other for name, other in pairs if other and other not in taken}

    # A method that a program reaches by `self` has one name in all of its classes.
    renamer = (chosen(nameable.variables()), chosen(nameable.attributes()))
    return program.with_files({path: module.visit(Renamer(*renamer)).code for path, module in facts.modules.items()})


@whole("names-invented")
def invented(program: Program) -> Program:
    """Every name of the program's own is an invented word."""
    supply = words()
    return rename(program, lambda name: next(supply).title() if name[:1].isupper() else next(supply))


@whole("names-of-training")
def training(program: Program) -> Program:
    """`model`, `loader`, `loss` ... under other words."""
    return rename(program, WORDS.get)


@whole("model-to-student")
def student(program: Program) -> Program:
    """`model` and `net` are called `student`."""
    return rename(program, {"model": "student", "net": "student_net", "network": "student_network"}.get)
