"""Six frames at 112x112 of videos of several kinds: what caulk and other readers take, and which frames they give.

    clips.py FOLDER ROUNDS

Videos lie in the folder and are made once. Every reader is a process of its own and has its turn in each round, starting with
another one each round. A frame counts as the one of a full decode that it resembles most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import av
import numpy as np
from clip_readers import READERS, SIZE, pyav_picture

FRAMES = 6
#: A little noise, as of a telephone by day, and much, which takes most of the bits.
LITTLE, MUCH = 3, 10
#: Name, seconds, noise, codec, its options.
VIDEOS = [
    ("10 s, H.264", 10, LITTLE, "libx264", {"preset": "veryfast", "crf": "23"}),
    ("60 s, H.264", 60, LITTLE, "libx264", {"preset": "veryfast", "crf": "23"}),
    ("10 s, H.264, much noise", 10, MUCH, "libx264", {"preset": "veryfast", "crf": "23"}),
    (
        "30 s, H.264, one key frame, 8 B-frames",
        30,
        LITTLE,
        "libx264",
        {"preset": "veryfast", "crf": "23", "x264-params": "keyint=9999:scenecut=0:bframes=8:b-pyramid=normal"},
    ),
    ("10 s, VP9", 10, LITTLE, "libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "b": "4M", "g": "120"}),
]


def make(path: Path, seconds: int, noise: int, codec: str, options: dict[str, str]) -> None:
    """FFmpeg's test pattern under noise, 1920x1080 at 30 frames per second."""
    graph = av.filter.Graph()
    nodes = [
        graph.add("testsrc2", f"size=1920x1080:rate=30:duration={seconds}"),
        graph.add("format", "yuv420p"),
        graph.add("noise", f"alls={noise}:allf=t"),
        graph.add("buffersink"),
    ]
    graph.link_nodes(*nodes).configure()
    partial = path.with_name("partial-" + path.name)
    with av.open(str(partial), "w") as output:
        stream = output.add_stream(codec, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for _ in range(seconds * 30):
            frame = graph.pull()
            frame.pict_type = 0
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    partial.rename(path)


def reference(path: Path) -> np.ndarray:
    """All frames of a full decode."""
    kept = path.with_suffix(".npy")
    if not kept.exists():
        with av.open(str(path)) as container:
            np.save(kept, np.asarray([pyav_picture(frame) for frame in container.decode(video=0)]))
    return np.load(kept)


def resembling(picture: np.ndarray, frames: np.ndarray) -> int:
    """Number of the frame that a picture resembles most."""
    target = picture.astype(np.int16)
    return int(np.argmin([np.abs(frame.astype(np.int16) - target).sum() for frame in frames]))


def libraries(folder: Path) -> dict[str, str]:
    """torchcodec looks for FFmpeg's libraries by name; those that PyAV brings along carry a hash in theirs."""
    bundled = Path(av.__file__).parents[1] / "av.libs"
    folder.mkdir(exist_ok=True)
    for library in [*bundled.glob("libav*"), *bundled.glob("libsw*")]:
        stem, _, version = library.name.partition(".so.")
        link = folder / f"{stem.rsplit('-', 1)[0]}.so.{version.split('.')[0]}"
        link.unlink(missing_ok=True)
        link.symlink_to(library)
    return {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{bundled}"}


def run(reader: str, path: Path, frames: list[int], environment: dict[str, str]) -> dict | str:
    """What a reader took, with its pictures; or why it gave none."""
    script, output = Path(__file__).with_name("clip_readers.py"), path.with_name("taken.npy")
    line = [sys.executable, script, reader, path, output, *map(str, frames)]
    environment = environment if reader.startswith("torchcodec") else dict(os.environ)
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return {**json.loads(done.stdout.splitlines()[-1]), "pictures": np.load(output)}


def compare(path: Path, rounds: int, environment: dict[str, str]) -> None:
    expected = reference(path)
    frames = [round(i * (len(expected) - 1) / (FRAMES - 1)) for i in range(FRAMES)]
    names = list(READERS)
    taken: dict[str, list] = {name: [] for name in names}
    for number in range(rounds):
        for position in range(len(names)):
            name = names[(position + number) % len(names)]
            taken[name].append(run(name, path, frames, environment))
    print(f"  {'reader':22} {'wall s':>8} {'CPU s':>8} {'peak MB':>8}  right frames")
    for name, runs in taken.items():
        good = [each for each in runs if isinstance(each, dict)]
        if not good:
            print(f"  {name:22} {runs[0]}")
            continue
        wall, cpu, peak = (median(each[figure] for each in good) for figure in ("wall", "cpu", "peak"))
        right = sum(resembling(picture, expected) == frame for picture, frame in zip(good[0]["pictures"], frames))
        print(f"  {name:22} {wall:8.3f} {cpu:8.3f} {peak / 1e6:8.1f}  {right} of {FRAMES}")


def main(folder: Path, rounds: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    environment = libraries(folder / "libraries")
    for name, seconds, noise, codec, options in VIDEOS:
        path = folder / f"{seconds}-{noise}-{codec}-{len(options)}.mp4"
        if not path.exists():
            make(path, seconds, noise, codec, options)
        rate = path.stat().st_size * 8e-6 / seconds
        print(f"{name}, {rate:.0f} Mbit/s: {FRAMES} frames at {SIZE}x{SIZE}, {rounds} rounds", flush=True)
        compare(path, rounds, environment)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
