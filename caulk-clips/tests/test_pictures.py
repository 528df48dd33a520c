"""What pictures of `caulk-clip` look like: odd sizes, shapes of pixels, matrices and ranges of colour."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import videos
from clipwork import NEEDED, Worker, caulk, check

av = pytest.importorskip("av", reason="makes the videos")

pytestmark = NEEDED


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    assert worker.close() == 0


@pytest.mark.parametrize(
    "name, codec, layout, parameters",
    [
        ("vp9.webm", "libvpx-vp9", "yuv420p", ""),
        ("mpeg4.mp4", "mpeg4", "yuv420p", ""),
        ("h264.mp4", "libx264", "yuv444p", videos.X264),
    ],
)
def test_odd_sizes(worker: Worker, tmp_path: Path, name: str, codec: str, layout: str, parameters: str) -> None:
    path = videos.encode(tmp_path / name, 30, codec, (321, 181), parameters=parameters, layout=layout)
    check(worker, path, 30)
    assert worker.decode(path, [3])["images"].shape == (1, 181, 321, 3)
    assert worker.decode(path, [3], size=113)["images"].shape == (1, 113, 113, 3)


#: Where the matrix of a stream comes from: red's and blue's part of luma.
MATRICES = {1: (0.2126, 0.0722), 5: (0.299, 0.114), 9: (0.2627, 0.0593)}


def rgb(y: int, u: int, v: int, matrix: int, full: bool) -> np.ndarray:
    """ITU-T H.273, equations 35 to 40 solved for red, green and blue."""
    red, blue = MATRICES[matrix]
    luma = y / 255 if full else (y - 16) / 219
    scale = 255 if full else 224
    b, r = luma + 2 * (1 - blue) * (u - 128) / scale, luma + 2 * (1 - red) * (v - 128) / scale
    g = (luma - red * r - blue * b) / (1 - red - blue)
    return np.clip(np.round(255 * np.array([r, g, b])), 0, 255)


@pytest.mark.parametrize("full", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize("matrix", MATRICES)
def test_colours_follow_the_stream(worker: Worker, tmp_path: Path, matrix: int, full: bool) -> None:
    colors = [(90, 110, 160), (150, 140, 120), (60, 128, 128), (180, 90, 140)]
    path = tmp_path / "colors.mp4"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, 2 if full else 1
        for y, u, v in colors:
            planes = [np.full((64, 64), y), np.full((16, 64), u), np.full((16, 64), v)]
            frame = av.VideoFrame.from_ndarray(np.concatenate(planes).astype(np.uint8), format="yuv420p")
            frame.colorspace, frame.color_range = matrix, 2 if full else 1
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    images = worker.decode(path, [0, 1, 2, 3], size=32)["images"].reshape(4, -1, 3)
    for image, color in zip(images, colors):
        assert np.abs(image - rgb(*color, matrix, full)).max() <= 2, (color, image[0], rgb(*color, matrix, full))


def bordered(path: Path, pixel: Fraction) -> Path:
    """White 100 x 80 pixels of a shape."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt = 100, 80, "yuv420p"
        stream.codec_context.sample_aspect_ratio = pixel
        frame = av.VideoFrame.from_ndarray(np.full((80, 100, 3), 255, np.uint8), format="rgb24")
        output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return path


@pytest.mark.parametrize("ending", ["mp4", "ts"])
def test_pixels_that_are_not_square(worker: Worker, tmp_path: Path, ending: str) -> None:
    """Television's pictures keep the proportions in which they are shown, whether the container tells them or each frame."""
    path = bordered(tmp_path / f"wide.{ending}", Fraction(8, 5))
    image = worker.decode(path, [0], size=64, fit="pad")["images"][0]
    # Shown, it is twice as wide as high.
    assert image[16:48].min() > 250 and image[:16].max() == 0 and image[48:].max() == 0
    assert worker.decode(path, [0], size=64)["images"].min() > 250
    square = bordered(tmp_path / f"square.{ending}", Fraction(1, 1))
    image = worker.decode(square, [0], size=64, fit="pad")["images"][0]
    assert image[7:57].min() > 250 and image[:6].max() == 0


def test_messages_of_damaged_videos_that_gave_clips_are_in_the_log(tmp_path: Path) -> None:
    path = videos.encode(tmp_path / "damaged.mp4", 120)
    data = bytearray(path.read_bytes())
    # The middle of the pictures: the tables are at the end.
    start = data.index(b"mdat")
    middle = start + (data.index(b"moov") - start) // 2
    data[middle : middle + 4000] = bytes(4000)
    path.write_bytes(data)
    (tmp_path / "videos.csv").write_text("video_path\ndamaged.mp4\n")
    words = ("prepare", "videos.csv", "--frames", "40", "--size", "32")
    for out, more in (("first", ()), ("again", ()), ("alone", ("--no-cache",))):
        told = caulk(*words, "--out", out, *more, cwd=tmp_path)
        assert "had to be decoded as a whole" in told
    logs = [(tmp_path / out / "clips.jsonl").read_text() for out in ("first", "again", "alone")]
    record = json.loads(logs[0].splitlines()[1])
    assert record["messages"] and len(record["messages"]) <= 8, record
    assert logs[0] == logs[1] == logs[2]
