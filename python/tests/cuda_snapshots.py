"""Snapshots as `torch.cuda.memory._dump_snapshot` writes them, made without a GPU.

The structure is that of `torch/csrc/cuda/Module.cpp` (`_cuda_memorySnapshot`): `segments` with `blocks`, `device_traces`,
`allocator_settings`, stacks as lists of frames that events and blocks share. A small allocator fills it, so that the history
and the segments agree. `python cuda_snapshots.py FOLDER` writes the files that the tests of `caulk_cuda` read.
"""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path
from typing import Any

MB = 1 << 20
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": "",
    "max_split_size": -1,
    "garbage_collection_threshold": 0.0,
    "expandable_segments": False,
    "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False,
    "pinned_use_cuda_host_register": False,
    "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
}
TORCH = "/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py"


class Card:
    """A device with an allocator that takes the smallest free block that is large enough."""

    def __init__(self, capacity: int = 1 << 40) -> None:
        self.capacity = capacity
        self.segments: list[dict[str, Any]] = []
        self.trace: list[dict[str, Any]] = []
        self.end = 0x7F00_0000_0000
        self.time = 0
        self.frames: dict[tuple[str, int, str], dict[str, Any]] = {}

    def stack(self, *places: tuple[str, int, str]) -> list[dict[str, Any]]:
        """Innermost first, below a frame of torch's; frames are shared, as torch shares them."""
        all_places = [("??", 0, "c10::alloc"), (TORCH, 1775, "_call_impl"), *places]
        new = [{"name": name, "filename": file, "line": line} for file, line, name in all_places]
        return [self.frames.setdefault((each["filename"], each["line"], each["name"]), each) for each in new]

    def record(self, action: str, address: int, size: int, frames: list[Any]) -> None:
        self.time += 7
        key = "device_free" if action == "oom" else "addr"
        event = {"action": action, key: address, "size": size, "stream": 0, "time_us": self.time}
        self.trace.append({**event, "compile_context": "N/A", "user_metadata": "", "frames": frames})

    def reserved(self) -> int:
        return sum(each["total_size"] for each in self.segments)

    def give_back(self) -> None:
        """Segments without a live block, as torch does before it fails."""
        for segment in [each for each in self.segments if len(each["blocks"]) == 1]:
            if segment["blocks"][0]["state"] == "inactive":
                self.segments.remove(segment)
                self.record("segment_free", segment["address"], segment["total_size"], [])

    def allocate(self, size: int, frames: list[Any]) -> dict[str, Any] | None:
        size = -(-size // 512) * 512
        kind = "small" if size <= MB else "large"
        free = [
            (block["size"], block["address"], segment, block)
            for segment in self.segments
            if segment["segment_type"] == kind
            for block in segment["blocks"]
            if block["state"] == "inactive" and block["size"] >= size
        ]
        if free:
            _, _, segment, block = min(free, key=lambda each: each[:2])
        else:
            total = 2 * MB if kind == "small" else 20 * MB if size < 10 * MB else -(-size // (2 * MB)) * 2 * MB
            if self.reserved() + total > self.capacity:
                self.give_back()
            if self.reserved() + total > self.capacity:
                self.record("oom", self.capacity - self.reserved(), size, frames)
                return None
            block = {"address": self.end, "size": total, "requested_size": 0, "state": "inactive", "frames": []}
            segment = {
                "device": 0,
                "address": self.end,
                "total_size": total,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "stream": 0,
                "segment_type": kind,
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": frames,
                "blocks": [block],
            }
            self.segments.append(segment)
            self.record("segment_alloc", self.end, total, frames)
            self.end += total
        rest = block["size"] - size
        if rest >= 512 if kind == "small" else rest > MB:
            place = segment["blocks"].index(block) + 1
            other = {**block, "address": block["address"] + size, "size": rest, "frames": []}
            segment["blocks"].insert(place, other)
            block["size"] = size
        block.update(state="active_allocated", requested_size=size, frames=frames)
        self.record("alloc", block["address"], size, frames)
        return block

    def free(self, block: dict[str, Any]) -> None:
        self.record("free_requested", block["address"], block["size"], [])
        self.record("free_completed", block["address"], block["size"], [])
        segment = next(each for each in self.segments if any(own is block for own in each["blocks"]))
        block.update(state="inactive", requested_size=0, frames=[])
        merged: list[dict[str, Any]] = []
        for each in segment["blocks"]:
            if merged and merged[-1]["state"] == each["state"] == "inactive":
                merged[-1]["size"] += each["size"]
            else:
                merged.append(each)
        segment["blocks"] = merged

    def snapshot(self, **settings: Any) -> dict[str, Any]:
        live = lambda segment: [b["size"] for b in segment["blocks"] if b["state"] == "active_allocated"]  # noqa: E731
        for each in self.segments:
            each["allocated_size"] = each["active_size"] = each["requested_size"] = sum(live(each))
        return {
            "segments": self.segments,
            "device_traces": [self.trace],
            "allocator_settings": {**SETTINGS, **settings},
            "external_annotations": [],
        }


def kept_features(epochs: int) -> Card:
    """A training that keeps a tensor of 3 MB in every epoch."""
    card = Card()
    step = ("/home/me/train.py", 21, "train_step")
    weights = [card.allocate(size * MB, card.stack(("/home/me/train.py", 9, "make"))) for size in (1, 4, 12)]
    assert all(weights)
    for _ in range(epochs):
        for _ in range(4):
            blocks = [card.allocate(size, card.stack(step)) for size in (300 << 10, 6 * MB, 14 * MB)]
            for block in blocks:
                card.free(block)
        card.allocate(3 * MB, card.stack(("/home/me/train.py", 30, "validate"), ("/home/me/train.py", 44, "<module>")))
    return card


def growing_buffers(steps: int) -> Card:
    """Each buffer is larger than every gap, and small tensors that stay lie between them."""
    card = Card()
    for step in range(steps):
        big = card.allocate((16 + 2 * step) * MB, card.stack(("/home/me/pack.py", 12, "collate")))
        assert big
        card.allocate(2 * MB, card.stack(("/home/me/pack.py", 17, "anchor")))
        card.free(big)
    return card


def cut_segments() -> Card:
    """One small tensor stays in each large segment, and then no gap is large enough: the device has room, and refuses."""
    card = Card(400 * MB)
    collate, keep = card.stack(("/home/me/cut.py", 8, "collate")), card.stack(("/home/me/cut.py", 15, "keep"))
    for block in [card.allocate(96 * MB, collate) for _ in range(4)]:
        card.free(block)
    for kept in (0, 0, 4):
        parts = [card.allocate(12 * MB, keep) for _ in range(32)]
        parts.sort(key=lambda block: block["address"])
        for place, block in enumerate(parts):
            if place % 8 or not kept:
                card.free(block)
    assert card.allocate(90 * MB, collate) is None
    return card


def large(path: Path, megabytes: int) -> None:
    """A file of about so many megabytes, most of it history: as a training has that recorded for hours."""
    random.seed(0)
    stacks = [
        [{"name": f"f{depth}", "filename": f"/home/me/m{depth % 9}.py", "line": number + depth} for depth in range(30)]
        for number in range(3000)
    ]
    card = kept_features(20)
    trace = []
    for number in range(megabytes * MB // 290):
        for action in ("alloc", "free_requested"):
            event = {"action": action, "addr": 0x7F00_0000_0000 + number % 5000 * MB, "size": 512 * (1 + number % 900)}
            event |= {"stream": 0, "time_us": 1_700_000_000_000_000 + number, "frames": []}
            event["frames"] = list(random.choice(stacks)) if action == "alloc" else []
            trace.append(event)
    card.trace = trace
    with path.open("wb") as file:
        pickle.dump(card.snapshot(), file)


def write(folder: Path) -> None:
    made = {
        "early": kept_features(3).snapshot(),
        "late": kept_features(9).snapshot(),
        "fragmented": growing_buffers(30).snapshot(),
        "failed": cut_segments().snapshot(),
        "set": growing_buffers(30).snapshot(
            expandable_segments=True, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
        ),
    }
    for name, snapshot in made.items():
        with (folder / f"{name}.pickle").open("wb") as file:
            pickle.dump(snapshot, file, protocol=4)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        large(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        write(Path(sys.argv[1]))
