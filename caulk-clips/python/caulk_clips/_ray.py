"""`caulk clips prepare` on a Ray cluster: every task prepares a part of the videos into one folder that all nodes share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import ray.data
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; `ray_prepare` needs it: install caulk-clips[ray]", name=error.name) from None

from ._fetch import is_url
from ._worker import find

#: Exit codes of `caulk clips prepare`: all videos gave clips, or some did not and are listed.
PREPARED = (0, 1)


def ray_prepare(
    manifest: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    frames: int | Sequence[int] = 6,
    size: int | tuple[int, int] = 112,
    select: str = "uniform",
    fit: str = "stretch",
    snap: int = 0,
    seed: int = 0,
    augment: int = 0,
    original: bool = True,
    operations: Sequence[str] | None = None,
    format: str = "npy",
    jobs: int = 1,
    memory: str = "1GB",
    timeout: str = "1h",
    source: str | os.PathLike[str] | None = None,
    scratch: str | os.PathLike[str] | None = None,
    scratch_limit: str = "10GB",
    tasks: int | None = None,
) -> None:
    """Prepare the clips of all videos of a table on the nodes of a Ray cluster, to the same bytes as on one machine.

    The manifest, its videos unless they are named by URL, and `out` must have the same paths on all nodes. Whatever is stopped
    goes on where it was when this is called again, and a task that Ray starts anew goes on, too. What there is at the end is what
    one `caulk clips prepare` would have made. `ray[data]` and caulk-clips must be installed on the nodes.

    Parameters
    ----------
    manifest, out
        The table of the videos, and the folder for their clips.
    frames, size, select, fit, seed
        As of `decode`.
    snap, augment, operations, format, timeout
        As of `caulk clips prepare`.
    original
        ``False`` leaves the original out.
    source, scratch, scratch_limit
        As of `caulk clips prepare`: what videos are relative to, a folder or a URL; and where copies lie of those that are named by
        URL: let it be a folder of the node's own where `out` is far away.
    jobs, memory
        Videos decoded at once by a task, which counts as many processors, and memory that they may take.
    tasks
        Parts, four for each `jobs` processors of the cluster unless it is told.

    Raises
    ------
    RuntimeError
        If clips cannot be prepared at all. Videos that gave none are in ``failed.jsonl``.
    """
    explicit = None if isinstance(frames, int) else ",".join(str(frame) for frame in frames)
    height, width = (size, size) if isinstance(size, int) else size
    words = ["prepare", os.path.abspath(manifest), "--out", os.path.abspath(out)]
    words += ["--select", select if explicit is None else explicit]
    words += ["--frames", str(frames)] if explicit is None else []
    words += ["--size", f"{width}x{height}", "--fit", fit, "--snap", str(snap), "--seed", str(seed)]
    words += ["--augment", str(augment), *([] if original else ["--no-original"])]
    words += ["--operations", ",".join(operations)] if operations is not None else []
    words += ["--format", format, "--jobs", str(jobs), "--memory", memory, "--timeout", timeout]
    # Tasks work in folders of Ray's.
    words += ["--source", _absolute(source)] if source is not None else []
    words += ["--scratch", os.path.abspath(scratch)] if scratch is not None else []
    words += ["--scratch-limit", scratch_limit]
    if not ray.is_initialized():
        ray.init()
    processors = int(ray.cluster_resources().get("CPU", 1))
    count = tasks or max(1, 4 * processors // jobs)
    parts: Any = ray.data.from_items([{"part": part} for part in range(count)], override_num_blocks=count)

    def prepare(row: dict[str, int]) -> dict[str, str]:
        return {"failure": _prepare([*words, "--shard", f"{row['part']}/{count}"])}

    told = [row["failure"] for row in parts.map(prepare, num_cpus=jobs).take_all()]
    # Finds all clips there, tries failed videos again, and writes log and tables as one run does.
    if failure := next(filter(None, told), "") or _prepare(words):
        raise RuntimeError(failure)
    for name in ("clips-*-of-*.jsonl", "failed-*-of-*.jsonl", ".lock-*-of-*"):
        for file in Path(out).glob(name):
            file.unlink()


def _absolute(source: str | os.PathLike[str]) -> str:
    text = os.fspath(source)
    return text if is_url(text) else os.path.abspath(text)


def _prepare(words: list[str]) -> str:
    """Runs `caulk-clips`; says why it failed, if it did."""
    command = Path(find()).with_name("caulk-clips")
    done = subprocess.run([command, *words], capture_output=True, text=True, check=False)
    if done.returncode in PREPARED:
        return ""
    return done.stderr.strip() or f"`caulk clips prepare` ended with exit code {done.returncode}"
