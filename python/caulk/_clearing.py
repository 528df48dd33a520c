"""Emptying caches and dropping tensors that objects keep."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from types import ModuleType
from typing import Any

from ._trees import is_tensor, tensors_in

_CACHE = type(functools.lru_cache(lambda: None))


def clear_caches(obj: object) -> int:
    """Empties every ``functools`` cache that belongs to an object, its class or its module.

    Those are functions under ``lru_cache`` or ``cache`` in the module, methods of the class and its bases under
    these, and values of ``cached_property`` on the object.

    Parameters
    ----------
    obj
        An object, a class or a module.

    Returns
    -------
    int
        Entries dropped.

    Examples
    --------
    >>> import functools
    >>> class Chain:
    ...     @functools.lru_cache
    ...     def jacobian(self, joint): return [joint]
    >>> chain = Chain()
    >>> _ = chain.jacobian(1), chain.jacobian(2)
    >>> clear_caches(chain)
    2
    """
    dropped = 0
    seen: set[int] = set()
    for value in _members(obj):
        cache = _unwrapped(value)
        if isinstance(cache, _CACHE) and id(cache) not in seen:
            seen.add(id(cache))
            dropped += cache.cache_info().currsize
            cache.cache_clear()
    own = getattr(obj, "__dict__", {})
    if not isinstance(obj, type | ModuleType):
        kept = [name for name in own if isinstance(_on_class(type(obj), name), functools.cached_property)]
        for name in kept:
            del own[name]
        dropped += len(kept)
    return dropped


def clear_tensors(obj: object) -> int:
    """Drops every tensor that an object keeps in its attributes, and in lists, sets and dicts there.

    Attributes become ``None``; containers lose their tensors and keep the rest. Parameters, buffers and submodules of
    a ``torch.nn.Module`` stay.

    Parameters
    ----------
    obj
        Any object with attributes; its attributes' own attributes are left alone.

    Returns
    -------
    int
        Bytes of the storages of what was dropped. They are free once nothing else refers to them.

    Examples
    --------
    >>> class Solution: pass
    >>> clear_tensors(Solution())
    0
    """
    storages: dict[int, int] = {}
    for name, value in list(_attributes(obj)):
        if is_tensor(value):
            _count(value, storages)
            setattr(obj, name, None)
        else:
            _strip(value, storages)
    return sum(storages.values())


def _members(obj: object) -> Iterator[object]:
    """What an object, its class with its bases, and its module have by name."""
    if isinstance(obj, ModuleType):
        module = obj
    else:
        kind = obj if isinstance(obj, type) else type(obj)
        for base in kind.__mro__:
            yield from list(vars(base).values())
        if not isinstance(obj, type):
            yield from list(getattr(obj, "__dict__", {}).values())
        found = sys.modules.get(kind.__module__)
        if found is None or kind.__module__ == "builtins":
            return
        module = found
    yield from list(vars(module).values())


def _unwrapped(value: Any) -> object:
    """The function inside a static, class or bound method or a property."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return value


def _on_class(kind: type, name: str) -> object:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _attributes(obj: object) -> Iterator[tuple[str, object]]:
    torch = sys.modules.get("torch.nn")
    is_module = torch is not None and isinstance(obj, torch.Module)
    for name, value in getattr(obj, "__dict__", {}).items():
        if not (is_module and name in ("_parameters", "_buffers", "_modules")):
            yield name, value
    for base in type(obj).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(obj, name):
                yield name, getattr(obj, name)


def _strip(container: object, storages: dict[int, int]) -> None:
    """Takes what is or holds tensors out of a container that can be changed."""

    def goes(value: object) -> bool:
        found = list(tensors_in(value))
        for tensor in found:
            _count(tensor, storages)
        return bool(found)

    if isinstance(container, MutableMapping):
        for key in [key for key, value in container.items() if goes(value)]:
            del container[key]
    elif isinstance(container, MutableSequence) and not isinstance(container, bytearray):
        stay = [value for value in container if not goes(value)]
        if len(stay) < len(container):
            container.clear()
            container.extend(stay)
    elif isinstance(container, MutableSet):
        for value in [value for value in container if goes(value)]:
            container.discard(value)


def _count(tensor: Any, storages: dict[int, int]) -> None:
    try:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    except (NotImplementedError, RuntimeError):
        # Sparse, meta and functional tensors have no storage of their own.
        return
