"""Videos whose frames carry their number, made with PyAV; and what a full decode of a file puts out.

A frame shows its number as two rows of five black or white blocks, over a picture that moves, so that a decoded one can be
told whatever codec and scaling have done to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av", reason="makes the videos")

RATE = 25
BITS = (2, 5)
X264 = "threads=1:bframes=3:keyint=50:scenecut=0"


def picture(number: int, width: int, height: int) -> np.ndarray:
    """The frame with a number."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(number).integers(0, 24, (height, width))
    image = np.stack([(x * 2 + number * 5) % 200, (y * 2 + number * 3) % 200, (x + y + number * 7) % 200], -1)
    image = image + noise[..., None]
    rows, columns = BITS
    for bit in range(rows * columns):
        top, left = bit // columns * height // rows, bit % columns * width // columns
        image[top : top + height // 4, left : left + width // 8] = 255 if number >> bit & 1 else 0
    return image.astype(np.uint8)


def number_of(image: np.ndarray) -> int:
    """The number that a frame shows."""
    height, width = image.shape[:2]
    rows, columns = BITS
    number = 0
    for bit in range(rows * columns):
        top, left = bit // columns * height // rows, bit % columns * width // columns
        block = image[top + height // 16 : top + height // 5, left + width // 32 : left + width // 11]
        number |= int(block.mean() > 128) << bit
    return number


def full_decode(path: Path) -> list[int]:
    """Numbers of all frames in the order in which PyAV's own FFmpeg puts them out."""
    numbers = []
    with av.open(str(path)) as container:
        try:
            for frame in container.decode(video=0):
                numbers.append(number_of(frame.to_ndarray(format="rgb24")))
        except av.error.InvalidDataError:
            pass
    return numbers


def encode(
    path: Path,
    frames: int,
    codec: str = "libx264",
    size: tuple[int, int] = (320, 180),
    times: Callable[[int], int] = lambda i: i,
    parameters: str = X264,
    container: dict[str, str] | None = None,
    layout: str = "yuv420p",
    **options: str,
) -> Path:
    """Makes a video of numbered frames; `times` gives their times in units of a frame."""
    key = {"libx264": "x264-params", "libx265": "x265-params"}.get(codec)
    settings = {**({key: parameters} if key and parameters else {}), **options}
    with av.open(str(path), "w", options=container or {}) as output:
        stream = output.add_stream(codec, rate=RATE, options=settings)
        stream.width, stream.height = size
        stream.pix_fmt = {"prores": "yuv422p10le", "mjpeg": "yuvj420p"}.get(codec, layout)
        stream.time_base = stream.codec_context.time_base = Fraction(1, RATE)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number, *size), format="rgb24")
            frame.pts, frame.time_base = times(number), Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return path


def pattern(path: Path, seconds: int, size: str) -> Path:
    """A video of FFmpeg's test pattern at 30 frames per second, encoded as fast as can be."""
    graph = av.filter.Graph()
    nodes = [graph.add("testsrc2", f"size={size}:rate=30:duration={seconds}"), graph.add("format", "yuv420p")]
    nodes.append(graph.add("buffersink"))
    graph.link_nodes(*nodes).configure()
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=30, options={"preset": "ultrafast", "x264-params": "keyint=60"})
        stream.width, stream.height = (int(side) for side in size.split("x"))
        for _ in range(seconds * 30):
            frame = graph.pull()
            frame.pict_type = 0
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return path


def copy(
    source: Path,
    target: Path,
    keep: Callable[[int, Any], bool] = lambda at, packet: True,
    shift: int = 0,
    options: dict[str, str] | None = None,
) -> Path:
    """Copies packets without decoding them; `shift`, in units of the stream, moves their times."""
    with av.open(str(source)) as old, av.open(str(target), "w", options=options or {}) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for at, packet in enumerate(old.demux(video=0)):
            if packet.size == 0 or not keep(at, packet):
                continue
            packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
            packet.stream = stream
            new.mux(packet)
    return target


def sound(path: Path) -> Path:
    """A file without video."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 8000, 0
        output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return path


def with_sound(source: Path, target: Path) -> Path:
    """Copies the packets of a video, with packets of silence between them."""
    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        sound = new.add_stream("aac", rate=8000)
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        silence.sample_rate = 8000
        for at, packet in enumerate(old.demux(video=0)):
            if packet.size:
                packet.stream = stream
                new.mux(packet)
            silence.pts = 1024 * at
            new.mux(sound.encode(silence))
        new.mux(sound.encode())
    return target


def turned(path: Path, degrees: int) -> Path:
    """Writes a rotation into the display matrix of an MP4 file, as telephones do."""
    one = 1 << 16
    matrix = {90: (0, one, 0, -one, 0), 180: (-one, 0, 0, 0, -one), 270: (0, -one, 0, one, 0)}[degrees]
    data = bytearray(path.read_bytes())
    identity = b"".join(value.to_bytes(4, "big", signed=True) for value in (one, 0, 0, 0, one))
    header = data.index(b"tkhd")
    at = data.index(identity, header)
    data[at : at + 20] = b"".join(value.to_bytes(4, "big", signed=True) for value in matrix)
    path.write_bytes(data)
    return path


def keys(path: Path) -> Iterable[tuple[int, Any]]:
    """Key packets with their numbers in decoding order."""
    with av.open(str(path)) as container:
        return [(at, packet.pts) for at, packet in enumerate(container.demux(video=0)) if packet.is_keyframe]
