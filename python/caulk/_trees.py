"""Nested values with tensors in them: lists, tuples, named tuples, dicts, sets, dataclasses."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def is_tensor(value: object) -> bool:
    """Is this a tensor of torch? Never imports torch."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    return tensor is not None and isinstance(value, tensor)


def tensors_in(tree: object) -> Iterator[Any]:
    """All tensors in a nested value, each object looked into once."""
    seen: set[int] = set()
    stack = [tree]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_tensor(value):
            yield value
        elif isinstance(value, Mapping):
            stack.extend(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            stack.extend(value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            stack.extend(getattr(value, field.name) for field in dataclasses.fields(value))


def detach_to_cpu(tree: T) -> T:
    """The same nested value with every tensor freed of its graph, in host memory of its own.

    Tensors that are views of larger ones are copied, so that they do not keep those alive; other values stay as they
    are, containers are made anew.

    Parameters
    ----------
    tree
        A tensor, or lists, tuples, named tuples, dicts, sets and dataclasses of such.

    Examples
    --------
    >>> detach_to_cpu({"loss": [1.5, None]})
    {'loss': [1.5, None]}
    """
    copied: T = _mapped(tree, _own_copy)
    return copied


def _own_copy(tensor: Any) -> Any:
    copy = tensor.detach().cpu()
    # Still the same storage, or a part of a larger one: then it must have its own.
    shared = copy.data_ptr() == tensor.data_ptr() or copy.untyped_storage().nbytes() > copy.nbytes
    return copy.clone() if shared else copy


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if is_tensor(value):
        return change(value)
    if isinstance(value, dict):
        entries = {key: _mapped(item, change) for key, item in value.items()}
        return _as(type(value), entries, value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change) for item in value))
    if isinstance(value, list | tuple | set | frozenset):
        return _as(type(value), [_mapped(item, change) for item in value], value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **{f.name: _mapped(getattr(value, f.name), change) for f in fields})
    return value


def _as(kind: type[Any], items: Any, original: Any) -> Any:
    """`items` as a container of this type; of a type that cannot be made from them, as the built-in one."""
    default_factory = getattr(original, "default_factory", None)
    try:
        return kind(default_factory, items) if default_factory is not None else kind(items)
    except TypeError:
        return items
