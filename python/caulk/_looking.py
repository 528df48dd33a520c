"""What is alive, what keeps it so, and what it keeps."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from . import _agent
from ._memory import format_bytes


class TypeCount(NamedTuple):
    """Live objects of one type.

    Attributes
    ----------
    name
        Qualified name of the type with its module; built-in types without.
    objects
        How many.
    bytes
        Their own size, without what they refer to.
    """

    name: str
    objects: int
    bytes: int


class Census(NamedTuple):
    """All objects that the garbage collector knows, by type.

    Attributes
    ----------
    objects
        Objects in all.
    types
        By type, those with most bytes first.
    """

    objects: int
    types: tuple[TypeCount, ...]

    def __str__(self) -> str:
        rows = [f"{format_bytes(row.bytes):>9}  {row.objects:>9}  {row.name}" for row in self.types[:10]]
        return "\n".join([f"{self.objects} objects; most bytes by type:", *rows])


class HeldBy(NamedTuple):
    """One way by which the program reaches an object.

    Attributes
    ----------
    expression
        As a person would type it: ``trainer.history[3]``.
    path
        From a root to the object: ``("module __main__", "global trainer", "attribute history", "index 3")``.
    function, file, line
        Running function that the path starts from, and where it is; empty and 0 where it starts from a module.
    """

    expression: str
    path: tuple[str, ...]
    function: str
    file: str
    line: int

    @classmethod
    def of(cls, held: tuple[str, list[str], str, str, int]) -> HeldBy:
        """From what the agent says."""
        expression, path, function, file, line = held
        return cls(expression, tuple(path), function, file, line)

    def __str__(self) -> str:
        where = f" in {self.function} ({self.file}:{self.line})" if self.function else ""
        return f"{self.expression or ' → '.join(self.path)}{where}"


class Retained(NamedTuple):
    """What a tensor keeps alive beside its own elements.

    Attributes
    ----------
    shown
        Bytes of its own elements.
    storage
        Bytes of the storage below it: larger than `shown` where it is a view.
    graph_nodes
        Nodes of the autograd graph behind it; 0 where it has none.
    saved
        Bytes that these nodes saved for backward, each storage once, parameters left out.
    node_types
        The commonest types of nodes, and how many.
    truncated
        The graph was too large to be walked whole: the figures are estimates.
    """

    shown: int
    storage: int
    graph_nodes: int
    saved: int
    node_types: tuple[tuple[str, int], ...]
    truncated: bool

    def __str__(self) -> str:
        graph = (
            f", a graph of {self.graph_nodes} nodes that saved {format_bytes(self.saved)}" if self.graph_nodes else ""
        )
        return f"{format_bytes(self.storage)} of storage for {format_bytes(self.shown)} shown{graph}"


def census() -> Census:
    """Counts all objects by type, without making or calling anything: some 15 ms for a million objects.

    Raises
    ------
    RuntimeError
        Where the interpreter offers no safe way, or there are too many objects.

    Examples
    --------
    >>> census().objects > 1000
    True
    """
    objects, types = _agent.take_census()
    return Census(objects, tuple(TypeCount(*row) for row in types))


def find_holders(obj: object) -> list[HeldBy]:
    """Everything that refers to an object, with a path from a variable of the program to it.

    Parameters
    ----------
    obj
        Any object that the collector or a container knows.

    Returns
    -------
    list of HeldBy
        Variables of running functions first. Empty where nothing was found: something in C holds it, or only the
        caller's own variable.

    Examples
    --------
    >>> import sys, types
    >>> module = sys.modules["settings"] = types.ModuleType("settings")
    >>> module.cache = {"best": [1, 2]}
    >>> [held.expression for held in find_holders(module.cache["best"])]
    ["settings.cache['best']"]
    """
    prepare()
    found = _agent.holders_of(obj)
    return [HeldBy.of(held) for held in found]


def retained(tensor: Any) -> Retained:
    """What a tensor keeps alive: its storage, the graph behind it, what that saved for backward.

    Parameters
    ----------
    tensor
        A `torch.Tensor` or `torch.nn.Parameter`.

    Raises
    ------
    TypeError
        For anything else, subclasses included: asking them would run code of theirs.

    Examples
    --------
    >>> import torch
    >>> row = torch.zeros(1000, 10)[0]
    >>> held = retained(row)
    >>> held.shown, held.storage, held.graph_nodes
    (40, 40000, 0)
    """
    found = _agent.pinned_by(tensor)
    if found is None:
        raise TypeError(f"a plain torch.Tensor is needed, not {type(tensor).__qualname__}")
    storage, shown, nodes, saved, types, truncated = found
    return Retained(shown, storage, nodes, saved, tuple(types), truncated)


_prepared = False


def prepare() -> None:
    """Tells the agent which files are not the user's, where `caulk run` has not done so."""
    global _prepared
    if not _prepared:
        own = os.path.dirname(os.path.abspath(__file__))
        _agent.configure_user_files([os.path.dirname(os.__file__), own])
        _agent.frames_usable()
        _prepared = True
