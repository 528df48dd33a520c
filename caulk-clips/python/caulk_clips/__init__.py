"""Clips of videos: exactly the frames that are wanted, and data sets of clips that `caulk clips prepare` has made.

```python
import caulk_clips

frames = caulk_clips.decode("video.mp4", [0, 15, 30], size=112)    # uint8, (3, 112, 112, 3)
clips = caulk_clips.ClipDataset("clips", fold=0, side="train")      # for torch.utils.data.DataLoader
```

numpy is needed; torch only by `IterableClips`, and where `ClipDataset` is asked for tensors or finds torch's own files.
"""

from __future__ import annotations

import csv
import json
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

try:
    import numpy as np
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; `caulk_clips` needs it: install numpy", name=error.name) from None

from ._worker import DecodeError, Worker, cache_folder, here

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._iterable import IterableClips
    from ._ray import ray_prepare

__all__ = ["ClipDataset", "DecodeError", "IterableClips", "decode", "ray_prepare"]

_worker = Worker()
#: Bytes that a worker takes for itself and a small video.
_LEAST_MEMORY = 96 << 20


def __getattr__(name: str) -> Any:
    if name == "IterableClips":
        from ._iterable import IterableClips

        return IterableClips
    if name == "ray_prepare":
        from ._ray import ray_prepare

        return ray_prepare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def decode(
    path: str | os.PathLike[str],
    frames: SupportsIndex | Iterable[SupportsIndex],
    size: SupportsIndex | tuple[SupportsIndex, SupportsIndex] | None = 112,
    *,
    select: str = "uniform",
    fit: str = "stretch",
    seed: int = 0,
    snap: int = 0,
    cache: bool = True,
    memory: SupportsIndex = 1_000_000_000,
    scratch: str | os.PathLike[str] | None = None,
    scratch_limit: int = 10_000_000_000,
) -> NDArray[np.uint8]:
    """Frames of a video, as an array of frames, rows, columns and channels (red, green, blue).

    Frame i is the i-th that a full decode puts out: edit lists are applied, and what cannot be decoded is not counted (behind
    damage in the middle of a file numbers may be off by as many frames). Only what the frames need is decoded, in a process of
    its own; a video that must be decoded as a whole is warned of.

    Parameters
    ----------
    path
        The video: a file, or a URL that fsspec knows (``s3://bucket/a.mp4``, ``zip://a.mp4::videos.zip``).
    frames
        Numbers of the frames, in any order, duplicates allowed; or how many `select` is to choose.
    size
        Rows and columns, or one number for both; ``None`` leaves pictures as large as they are.
    select
        ``uniform`` (first to last), ``segments`` (the middle of each of as many segments), ``random`` (one of each segment, by
        `seed` and path), or ``stride:N``.
    fit
        How a picture gets its shape: ``stretch``, ``crop`` (the middle) or ``pad`` (black), the latter two in the proportions in
        which the video is shown.
    seed
        Seed of ``random``.
    snap
        Take the frame that is cheapest to decode of those at most as many away from each. `caulk clips decode` says which.
    cache
        Whether to keep what the packets of a video tell, in the user's cache (256 MB at most), where its container has no table of
        them: it need not be read as a whole the next time.
    memory
        Bytes that decoding may take, at least 96 * 2**20. A video that would take more is refused; where another number is given
        than in the call before, another process decodes.
    scratch, scratch_limit
        Where a copy of a video lies that is named by URL, while it is decoded (the system's folder for temporary files unless it is
        told), and how many bytes it may have.

    Raises
    ------
    DecodeError
        If there is no video that can be decoded or fetched, or no such frame.

    Examples
    --------
    >>> decode("no/such/video.mp4", [0])
    Traceback (most recent call last):
    caulk_clips._worker.DecodeError: `no/such/video.mp4`: cannot open: No such file or directory
    """
    name = os.fsdecode(path)
    request: dict[str, Any] = {
        "name": name,
        **_frames(frames, select),
        "size": _shape(size),
        "fit": fit,
        "seed": _number("seed", seed, 0, 2**64),
        "snap": _number("snap", snap, 0),
    }
    megabytes = _number("memory", memory, _LEAST_MEMORY, 2**63) // 1_000_000
    if fit not in ("stretch", "crop", "pad"):
        raise ValueError(f"fit={fit!r} is none of stretch, crop, pad")
    with here(name, scratch, scratch_limit) as (file, is_copy):
        request |= {"path": file, "cache": cache_folder() if cache and not is_copy else None}
        answer, data = _worker.ask({"decode": request}, megabytes)
    if "failed" in answer:
        raise DecodeError(f"`{name}`: {answer['failed']}")
    if why := answer.get("sequential"):
        warnings.warn(f"`{name}` was decoded as a whole: {why}", stacklevel=2)
    pictures = answer["pictures"]
    shape = (len(pictures["frames"]), pictures["size"]["height"], pictures["size"]["width"], 3)
    return np.frombuffer(bytearray(data), np.uint8).reshape(shape)


def _frames(frames: SupportsIndex | Iterable[SupportsIndex], select: str) -> dict[str, Any]:
    if isinstance(frames, str):
        raise TypeError(f"frames={frames!r}: frames are numbers; how they are chosen is `select`")
    if isinstance(frames, Iterable):
        chosen = [_number("a frame", frame, 0) for frame in frames]
        if not chosen:
            raise ValueError("no frames are asked for")
        return {"selection": {"explicit": chosen}, "frames": 1}
    return {"selection": _selection(select), "frames": _number("frames", frames, 1)}


def _selection(select: str) -> str | dict[str, int]:
    if select.startswith("stride:") and select[7:].isdecimal() and int(select[7:]) > 0:
        return {"stride": _number("stride", int(select[7:]), 1)}
    if select not in ("uniform", "segments", "random"):
        raise ValueError(f"select={select!r} is none of uniform, segments, random, stride:N")
    return select


def _shape(size: SupportsIndex | tuple[SupportsIndex, SupportsIndex] | None) -> dict[str, int] | None:
    if size is None:
        return None
    height, width = size if isinstance(size, tuple | list) else (size, size)
    return {"width": _number("width", width, 1), "height": _number("height", height, 1)}


def _number(what: str, value: SupportsIndex, least: int, most: int = 2**32) -> int:
    number = operator.index(value)
    if isinstance(value, bool) or not least <= number < most:
        raise ValueError(f"{what} {value!r} is not a number from {least} to {most - 1}")
    return number


class ClipDataset:
    """Clips that `caulk clips prepare` has made, mapped from their files: a map-style data set for a ``DataLoader``.

    An item is ``(clip, label)``: a tensor of unsigned bytes (frames, rows, columns, channels) that shares its memory with the
    system's cache of the file, and the number of its label in `labels`. Nothing is kept of an item, and the list of items is
    two arrays, so workers do not grow.

    Parameters
    ----------
    folder
        What ``--out`` named.
    fold, side
        One side, ``train`` or ``validation``, of a fold that `caulk clips split` has written; all clips without.
    transform
        Called with each clip.
    tensors
        ``False`` for arrays instead of tensors.

    Examples
    --------
    >>> ClipDataset("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/folder/metadata.csv'
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        fold: int | None = None,
        side: str = "train",
        transform: Callable[[Any], Any] | None = None,
        tensors: bool = True,
    ) -> None:
        self.folder: str = os.fspath(folder)
        self.transform: Callable[[Any], Any] | None = transform
        self.tensors: bool = tensors
        if side not in ("train", "validation"):
            raise ValueError(f"side={side!r} is neither train nor validation")
        with open(os.path.join(self.folder, "metadata.csv"), newline="", encoding="utf-8") as table:
            rows = [(row["video_path"], row["label"]) for row in csv.DictReader(table)]
        #: Labels of the whole set in order, numbers as numbers; an item has the number of its own, the same on both sides.
        self.labels: list[str] = _in_order({label for _, label in rows})
        if fold is not None:
            with open(os.path.join(self.folder, "folds", f"fold-{fold}.json"), encoding="utf-8") as document:
                chosen = set(json.load(document)[side])
            rows = [row for row in rows if row[0] in chosen]
        # Two arrays: a list of strings would be copied page by page as forked workers count references.
        self._files = np.array([file.encode() for file, _ in rows], dtype=np.bytes_)
        numbers = {label: number for number, label in enumerate(self.labels)}
        self._labels = np.array([numbers[label] for _, label in rows], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        file = self._files[index].decode()
        clip: Any = _mapped(os.path.join(self.folder, file))
        if self.tensors:
            import torch

            clip = torch.from_numpy(clip)
        if self.transform is not None:
            clip = self.transform(clip)
        return clip, int(self._labels[index])

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return (self[index] for index in range(len(self)))


def _in_order(labels: set[str]) -> list[str]:
    try:
        return sorted(labels, key=int)
    except ValueError:
        return sorted(labels)


def _mapped(path: str) -> NDArray[np.uint8]:
    """A clip in its file. Writing to it changes a copy of the page, not the file."""
    if path.endswith(".npy"):
        clip: NDArray[np.uint8] = np.load(path, mmap_mode="c")
        return np.asarray(clip)
    if path.endswith(".pt"):
        return _mapped_from_archive(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        shape = json.loads(file.read(length))["clip"]["shape"]
    return np.asarray(np.memmap(path, np.uint8, mode="c", offset=8 + length, shape=tuple(shape)))


def _mapped_from_archive(path: str) -> NDArray[np.uint8]:
    """A clip in torch's format, whose archive stores it as it is behind a header of its own; torch reads the shape."""
    import torch

    clip: NDArray[np.uint8] = torch.load(path, weights_only=True, mmap=True).numpy()
    return clip
