"""Clips that are decoded as they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import DecodeError, decode


class IterableClips(IterableDataset):
    """Clips of videos, decoded on the fly, one at a time in each worker of a ``DataLoader``.

    An item is ``(clip, index)``: a tensor of unsigned bytes (frames, rows, columns, channels) and the number of its video. Workers
    share the videos among them. Each keeps one decoder, a process of its own that holds one video at a time.

    Parameters
    ----------
    videos
        Their paths, or URLs that fsspec knows.
    frames, size, select, fit, seed, snap, cache, memory, scratch, scratch_limit
        As of `decode`; each worker of the ``DataLoader`` holds one copy of a video at a time, and takes so much memory.
    shard
        ``(rank, world_size)`` where several processes train together: each decodes every ``world_size``-th video, from the
        ``rank``-th on. Ranks may get one video more than others.
    transform
        Called with each clip.
    skip_failed
        Leave out videos that cannot be decoded, instead of raising.

    Examples
    --------
    >>> list(IterableClips(["no/such/video.mp4"], skip_failed=True))
    []
    """

    def __init__(
        self,
        videos: Sequence[str | os.PathLike[str]],
        frames: int | Sequence[int] = 6,
        size: int | tuple[int, int] | None = 112,
        *,
        select: str = "uniform",
        fit: str = "stretch",
        seed: int = 0,
        snap: int = 0,
        cache: bool = True,
        memory: int = 1_000_000_000,
        shard: tuple[int, int] = (0, 1),
        scratch: str | os.PathLike[str] | None = None,
        scratch_limit: int = 10_000_000_000,
        transform: Callable[[Any], Any] | None = None,
        skip_failed: bool = False,
    ) -> None:
        super().__init__()
        self.videos: list[str] = [os.fspath(video) for video in videos]
        self._options: dict[str, Any] = {
            "frames": frames,
            "size": size,
            "select": select,
            "fit": fit,
            "seed": seed,
            "snap": snap,
            "cache": cache,
            "memory": memory,
            "scratch": scratch,
            "scratch_limit": scratch_limit,
        }
        rank, count = shard
        if not 0 <= rank < count:
            raise ValueError(f"shard={shard!r} is not (rank, world_size) with 0 <= rank < world_size")
        self.shard: tuple[int, int] = (rank, count)
        self.transform: Callable[[Any], Any] | None = transform
        self.skip_failed: bool = skip_failed

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        rank, count = self.shard
        for index in range(rank + count * first, len(self.videos), count * step):
            try:
                frames = decode(self.videos[index], **self._options)
            except DecodeError:
                if self.skip_failed:
                    continue
                raise
            clip: Any = torch.from_numpy(frames)
            yield (self.transform(clip) if self.transform else clip), index
