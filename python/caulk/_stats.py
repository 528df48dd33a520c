"""Memory statistics for logs: in one line, or in detail."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ._logging import say
from ._looking import census
from ._memory import format_bytes, get_memory_usage

#: Rows of each kind.
_MOST = 10


def log_memory_stats(
    label: str,
    detailed: bool = False,
    *,
    file: str | os.PathLike[str] | None = None,
    logger: logging.Logger | None = None,
) -> dict[str, Any]:
    """Logs what memory the process uses, and with `detailed` what for.

    Parameters
    ----------
    label
        What has just happened: ``"after validation"``.
    detailed
        Adds the types with most bytes, tensors by device and type, modules, data frames, figures, threads and open
        files. Goes through all objects: some 100 ms.
    file
        Append to this file instead of logging: one JSON object per line where it ends with ``.jsonl``, else text.
    logger
        Log there, at level ``INFO``, instead of to the logger ``caulk``. Where no handler is set up for it, the text goes
        to standard error.

    Returns
    -------
    dict
        What was logged, in bytes and counts.

    Raises
    ------
    OSError
        Where the file cannot be written.

    Examples
    --------
    >>> stats = log_memory_stats("before training")
    >>> stats["label"], stats["memory"]["rss"] > 0
    ('before training', True)
    """
    stats: dict[str, Any] = {"label": label, "memory": get_memory_usage()._asdict()}
    if detailed:
        stats |= _details()
    text = "\n  ".join(_lines(stats))
    if file is None:
        say(logging.INFO, text, logger)
        return stats
    with open(file, "a", encoding="utf-8") as out:
        out.write(json.dumps(stats) + "\n" if Path(file).suffix == ".jsonl" else text + "\n")
    return stats


def _details() -> dict[str, Any]:
    types = census().types[:_MOST]
    objects = gc.get_objects()
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    tensors = [thing for thing in objects if tensor and _is_a(thing, tensor)]
    return {
        "types": [row._asdict() for row in types],
        "tensors": _tensors(tensors),
        "modules": _modules(objects),
        "frames": sorted(_data_frames(objects), key=lambda frame: -frame["bytes"])[:_MOST],
        "figures": _figures(),
        "threads": threading.active_count(),
        "fds": len(os.listdir("/proc/self/fd")),
    }


def _tensors(tensors: Iterable[Any]) -> list[dict[str, Any]]:
    """Count and bytes by device and type; of tensors that share a storage it counts once."""
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    storages: set[tuple[str, int]] = set()
    for tensor in tensors:
        key = (str(tensor.device), str(tensor.dtype).removeprefix("torch."))
        counts[key] += 1
        try:
            storage = tensor.untyped_storage()
            place = (key[0], storage.data_ptr())
        except (NotImplementedError, RuntimeError):
            # Sparse, meta and functional tensors have no storage of their own.
            continue
        if place not in storages:
            storages.add(place)
            sizes[key] += storage.nbytes()
    rows = [
        {"device": device, "dtype": dtype, "count": count, "bytes": sizes[device, dtype]}
        for (device, dtype), count in counts.items()
    ]
    return sorted(rows, key=lambda row: -row["bytes"])


def _modules(objects: Iterable[object]) -> list[dict[str, Any]]:
    """`torch.nn` modules that are no part of another, with the bytes of their parameters and buffers."""
    nn = sys.modules.get("torch.nn")
    if nn is None:
        return []
    modules: list[Any] = [thing for thing in objects if _is_a(thing, nn.Module)]
    parts = {id(child) for module in modules for child in module._modules.values()}
    rows = []
    for module in modules:
        if id(module) not in parts:
            tensors = [*module.parameters(), *module.buffers()]
            size = sum(tensor.nbytes for tensor in tensors)
            rows.append({"name": type(module).__qualname__, "bytes": size, "tensors": len(tensors)})
    return sorted(rows, key=lambda row: -row["bytes"])[:_MOST]


def _data_frames(objects: Iterable[object]) -> Iterator[dict[str, Any]]:
    """Tables of polars, pandas and pyarrow that the program has loaded these for.

    Those of pandas are asked without their strings: counting these would take seconds.
    """
    measures: list[tuple[str, str, Any]] = [
        ("polars", "DataFrame", lambda frame: frame.estimated_size()),
        ("pandas", "DataFrame", lambda frame: int(frame.memory_usage(index=True, deep=False).sum())),
        ("pyarrow", "Table", lambda table: table.nbytes),
    ]
    known = []
    for library, name, measure in measures:
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None:
            known.append((kind, f"{library}.{name}", measure))
    if not known:
        return
    # Those of polars and pyarrow are no concern of the collector's: they are met in what refers to them.
    met = {id(thing): thing for thing in objects}
    for thing in gc.get_referents(*(thing for thing in objects if type(thing) in (dict, list, tuple))):
        met.setdefault(id(thing), thing)
    for thing in met.values():
        for kind, name, measure in known:
            if _is_a(thing, kind):
                yield {"name": name, "shape": list(getattr(thing, "shape", ())), "bytes": measure(thing)}


def _is_a(thing: object, kind: type) -> bool:
    """Asks the type alone: `isinstance` would run the `__class__` of lazy objects."""
    return issubclass(type(thing), kind)


def _figures() -> int:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return len(helpers.Gcf.figs) if helpers is not None else 0


def _lines(stats: dict[str, Any]) -> Iterator[str]:
    memory = stats["memory"]
    gpu = ""
    if memory["gpu_free"] is not None:
        parts = (f"{format_bytes(memory[f'gpu_{what}'])} {what}" for what in ("allocated", "reserved", "free"))
        gpu = f"; GPU {', '.join(parts)}"
    yield f"{stats['label']}: {format_bytes(memory['rss'])} resident, {format_bytes(memory['vms'])} mapped{gpu}"
    if "types" not in stats:
        return
    for row in stats["types"]:
        yield f"{format_bytes(row['bytes']):>9}  {row['objects']:>8}  {row['name']}"
    for row in stats["tensors"]:
        yield f"{format_bytes(row['bytes']):>9}  {row['count']:>8}  tensors {row['dtype']} on {row['device']}"
    for row in stats["modules"]:
        yield f"{format_bytes(row['bytes']):>9}  {row['tensors']:>8}  tensors in module {row['name']}"
    for row in stats["frames"]:
        shape = " x ".join(str(length) for length in row["shape"])
        yield f"{format_bytes(row['bytes']):>9}            {row['name']} of {shape}"
    yield f"{stats['figures']} figures, {stats['threads']} threads, {stats['fds']} open files"
