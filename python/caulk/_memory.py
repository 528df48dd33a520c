"""Memory of this process and its GPU, read and released."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any, NamedTuple

from . import _agent


class MemoryUsage(NamedTuple):
    """Memory of this process, in bytes.

    Attributes
    ----------
    rss
        Resident set size.
    vms
        Address space that is mapped.
    swap
        What of the process lies in swap.
    cgroup
        What the process's cgroup is charged with, all its processes and the page cache together; ``None`` where the
        process is in no cgroup that can be read.
    pss
        Proportional set size: pages shared with other processes count in parts. ``None`` unless it was asked for.
    gpu_allocated
        Held by tensors on all GPUs; 0 where the program does not use one.
    gpu_reserved
        Held by torch's caching allocator on all GPUs.
    gpu_free
        Free on the current GPU, as the driver counts it; ``None`` where the program does not use one.
    """

    rss: int
    vms: int
    swap: int
    cgroup: int | None
    pss: int | None
    gpu_allocated: int
    gpu_reserved: int
    gpu_free: int | None

    def __str__(self) -> str:
        parts = [f"{format_bytes(self.rss)} resident"]
        if self.pss is not None:
            parts.append(f"{format_bytes(self.pss)} proportional")
        if self.swap:
            parts.append(f"{format_bytes(self.swap)} in swap")
        if self.gpu_free is not None:
            held = f"{format_bytes(self.gpu_allocated)} of {format_bytes(self.gpu_reserved)}"
            parts.append(f"GPU {held} reserved in use, {format_bytes(self.gpu_free)} free")
        return ", ".join(parts)


class Released(NamedTuple):
    """What a cleanup has given back.

    Attributes
    ----------
    objects
        Unreachable objects that the garbage collector found.
    rss
        Bytes by which the resident set shrank; negative where it grew meanwhile.
    gpu
        Bytes by which torch's reserved GPU memory shrank.
    """

    objects: int
    rss: int
    gpu: int

    def __str__(self) -> str:
        gpu = f", {format_bytes(self.gpu)} of GPU memory" if self.gpu else ""
        return f"released {format_bytes(self.rss)} resident{gpu}, {self.objects} objects collected"


def format_bytes(count: float) -> str:
    """A number of bytes in words.

    Parameters
    ----------
    count
        Bytes; units are binary (1 KB is 1024 bytes).

    Examples
    --------
    >>> format_bytes(1536), format_bytes(-3 * 1024**3)
    ('1.50 KB', '-3.00 GB')
    """
    size, unit = abs(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    digits = 0 if unit == "B" else max(0, 2 - (size >= 10) - (size >= 100))
    return f"{'-' if count < 0 else ''}{size:.{digits}f} {unit}"


def get_memory_usage(pss: bool = False) -> MemoryUsage:
    """Memory of this process now.

    Parameters
    ----------
    pss
        Read the proportional set size too. The kernel walks all pages for it: milliseconds per gigabyte.

    Examples
    --------
    >>> usage = get_memory_usage()
    >>> usage.vms >= usage.rss > 0, usage.pss
    (True, None)
    """
    rss, vms, swap, cgroup = _agent.memory_figures(_cgroup_file())
    allocated, reserved, free = _gpu()
    return MemoryUsage(rss, vms, swap, cgroup, _pss() if pss else None, allocated, reserved, free)


def clear_gpu_memory() -> int:
    """Gives GPU memory back that no tensor holds: collects garbage, then empties torch's cache.

    Returns
    -------
    int
        Bytes of reserved memory given back; 0 where the program does not use a GPU.

    Notes
    -----
    Waits for the GPU. Once after an evaluation is sensible; at every step it only slows the program down.

    Examples
    --------
    >>> clear_gpu_memory() >= 0
    True
    """
    gc.collect()
    return _empty_cache()


def aggressive_gc(passes: int = 3, cuda: bool = True, *, clear_cuda: bool | None = None) -> Released:
    """Collects garbage several times, empties torch's GPU cache, and gives free pages back to the system.

    Parameters
    ----------
    passes
        Most collections; finalisers may leave garbage for the next one. It ends early when one finds nothing.
    cuda
        Empty torch's cache too, where the program uses a GPU.
    clear_cuda
        Another name for `cuda`.

    Raises
    ------
    ValueError
        If `passes` is less than 1.

    Examples
    --------
    >>> knot = []
    >>> knot.append(knot)
    >>> del knot
    >>> aggressive_gc().objects > 0
    True
    """
    if passes < 1:
        raise ValueError(f"at least one pass is needed, not {passes}")
    before = _agent.memory_figures()[0]
    objects = 0
    for _ in range(passes):
        found = gc.collect()
        objects += found
        if not found:
            break
    wanted = cuda if clear_cuda is None else clear_cuda
    gpu = _empty_cache() if wanted else 0
    _agent.trim_malloc()
    return Released(objects, before - _agent.memory_figures()[0], gpu)


def used_cuda() -> Any:
    """The module ``torch.cuda`` where the program has begun to use it; importing or starting it is left to the program."""
    cuda = sys.modules.get("torch.cuda")
    return cuda if cuda is not None and getattr(cuda, "_initialized", False) else None


def _gpu() -> tuple[int, int, int | None]:
    cuda = used_cuda()
    if cuda is None:
        return 0, 0, None
    devices = range(cuda.device_count())
    allocated = sum(cuda.memory_allocated(device) for device in devices)
    reserved = sum(cuda.memory_reserved(device) for device in devices)
    return allocated, reserved, cuda.mem_get_info()[0]


def _empty_cache() -> int:
    cuda = used_cuda()
    if cuda is None:
        return 0
    before = _gpu()[1]
    cuda.synchronize()
    cuda.empty_cache()
    cuda.ipc_collect()
    return before - _gpu()[1]


def _pss() -> int | None:
    try:
        with open("/proc/self/smaps_rollup") as file:
            lines = [line for line in file if line.startswith("Pss:")]
    except OSError:
        return None
    return int(lines[0].split()[1]) * 1024 if lines else None


_cgroup: dict[int, str | None] = {}


def _cgroup_file() -> str | None:
    """The file that says what this process's cgroup is charged with (cgroups(7)); looked up once per process."""
    pid = os.getpid()
    if pid not in _cgroup:
        _cgroup.clear()
        _cgroup[pid] = _find_cgroup()
    return _cgroup[pid]


def _find_cgroup() -> str | None:
    try:
        with open("/proc/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, path in lines:
        if not controllers:
            below, name = "/sys/fs/cgroup", "memory.current"
        elif "memory" in controllers.split(","):
            below, name = "/sys/fs/cgroup/memory", "memory.usage_in_bytes"
        else:
            continue
        # Within a namespace of its own a container sees its cgroup as the root of the tree.
        for candidate in (f"{below}{path.rstrip('/')}/{name}", f"{below}/{name}"):
            if os.access(candidate, os.R_OK):
                return candidate
    return None
