"""All transformations: importing this fills the registry."""

from . import calls, classes, containers, extracts, fields, growth, loops, moves, names, wraps
from .registry import TRANSFORMATIONS

__all__ = [
    "TRANSFORMATIONS",
    "calls",
    "classes",
    "containers",
    "extracts",
    "fields",
    "growth",
    "loops",
    "moves",
    "names",
    "wraps",
]
