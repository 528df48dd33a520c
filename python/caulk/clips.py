"""Clips of videos: what the package `caulk_clips` has, under caulk's name.

```python
import caulk.clips

frames = caulk.clips.decode("video.mp4", [0, 15, 30], size=112)    # uint8, (3, 112, 112, 3)
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import caulk_clips
except ModuleNotFoundError as error:
    if error.name != "caulk_clips":
        raise
    raise ModuleNotFoundError(
        "`caulk.clips` needs the package caulk-clips, which is not installed\n"
        "hint: install it: `pip install /path/to/caulk/caulk-clips`, or `cargo xtask develop --clips` in caulk's source tree",
        name="caulk_clips",
    ) from None

if TYPE_CHECKING:
    from caulk_clips import ClipDataset, DecodeError, IterableClips, decode, ray_prepare

__all__ = ["ClipDataset", "DecodeError", "IterableClips", "decode", "ray_prepare"]


def __getattr__(name: str) -> Any:
    return getattr(caulk_clips, name)


def __dir__() -> list[str]:
    return list(__all__)
