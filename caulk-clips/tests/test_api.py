"""`caulk_clips`: frames as arrays, prepared clips and clips on the fly as data sets."""

from __future__ import annotations

import csv
import doctest
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from clipwork import CLIPS
from harness import program_environment

torch = pytest.importorskip("torch")

import caulk_clips  # noqa: E402
import caulk_clips._iterable  # noqa: E402

pytestmark = pytest.mark.usefixtures("clip_worker")


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return videos.encode(tmp_path_factory.mktemp("api") / "plain.mp4", 60)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("set")
    rows = ["video_path,label"]
    for number in range(6):
        videos.encode(place / f"{number}.mp4", 20, size=(160, 96))
        rows.append(f"{number}.mp4,{'real' if number % 2 else 'fake'}")
    (place / "videos.csv").write_text("\n".join(rows) + "\n")
    for words in (
        ("prepare", "videos.csv", "--out", "out", "--frames", "4", "--size", "48", "--augment", "1"),
        ("prepare", "videos.csv", "--out", "tensors", "--frames", "4", "--size", "48", "--format", "safetensors"),
        ("prepare", "videos.csv", "--out", "torch", "--frames", "4", "--size", "48", "--format", "pt"),
        ("split", "videos.csv", "--out", "out", "--folds", "3"),
    ):
        subprocess.run([CLIPS, *words], cwd=place, env=program_environment(), check=True, capture_output=True)
    return place / "out"


def test_frames_come_in_the_order_asked(video: Path) -> None:
    frames = caulk_clips.decode(video, [41, 7, 7, 0], size=None)
    assert frames.shape == (4, 180, 320, 3) and frames.dtype == np.uint8
    assert [videos.number_of(frame) for frame in frames] == [41, 7, 7, 0]
    assert np.array_equal(frames[1], frames[2])


def test_sizes_and_selections(video: Path) -> None:
    assert caulk_clips.decode(video, 6, (90, 160)).shape == (6, 90, 160, 3)
    shown = [videos.number_of(frame) for frame in caulk_clips.decode(video, 4, None)]
    assert shown == [0, 19, 39, 59]
    shown = [videos.number_of(frame) for frame in caulk_clips.decode(video, 3, None, select="stride:10")]
    assert shown == [0, 10, 20]
    first = caulk_clips.decode(video, 5, select="random", seed=3)
    assert np.array_equal(first, caulk_clips.decode(video, 5, select="random", seed=3))


def test_a_global_seed_is_neither_used_nor_changed(video: Path) -> None:
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    caulk_clips.decode(video, 5, select="random")
    assert np.array_equal(before, np.random.get_state()[1])


def test_errors_say_what_is_wrong(video: Path) -> None:
    with pytest.raises(caulk_clips.DecodeError, match="frame 60 was asked for; the video has 60 frames"):
        caulk_clips.decode(video, [60])
    with pytest.raises(ValueError, match="none of uniform"):
        caulk_clips.decode(video, 3, select="some")
    with pytest.raises(ValueError, match="no frames"):
        caulk_clips.decode(video, [])


@pytest.mark.parametrize(
    ("frames", "options", "error"),
    [
        ([-1], {}, ValueError),
        ([1.5], {}, TypeError),
        ("uniform", {}, TypeError),
        (0, {}, ValueError),
        ([0], {"fit": "some"}, ValueError),
        ([0], {"seed": -1}, ValueError),
        ([0], {"snap": -1}, ValueError),
        ([0], {"size": (10, 0)}, ValueError),
        (2, {"select": "stride:0"}, ValueError),
    ],
)
def test_what_is_no_request_is_refused_before_anybody_is_asked(
    video: Path, frames: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        caulk_clips.decode(video, frames, **options)


def test_numbers_of_numpy_are_numbers(video: Path) -> None:
    shown = caulk_clips.decode(video, np.array([3, 4]), size=(np.int64(20), np.int64(30)))
    assert shown.shape == (2, 20, 30, 3)
    assert caulk_clips.decode(video, np.int64(3)).shape == (3, 112, 112, 3)


def test_narrow_pictures_are_whole(video: Path, tmp_path: Path) -> None:
    # Rows of up to 64 bytes are as long as what is behind the last one.
    for width in range(1, 25):
        pair = caulk_clips.decode(video, [5, 40], size=(16, width))
        single = caulk_clips.decode(video, [40], size=(16, width))
        assert pair.shape == (2, 16, width, 3) and np.array_equal(pair[1], single[0]), width
    tall = videos.encode(tmp_path / "tall.mp4", 6, size=(64, 640))
    padded = caulk_clips.decode(tall, [5], size=112, fit="pad")[0]
    assert padded[:, :50].max() == 0 and padded[:, 62:].max() == 0 and padded[:, 52:60].max() > 0


def test_more_pictures_than_memory_are_refused(video: Path) -> None:
    with pytest.raises(caulk_clips.DecodeError, match="50 pictures of 50332 KB each"):
        caulk_clips.decode(video, range(50), size=4096)
    assert caulk_clips.decode(video, [0]).shape == (1, 112, 112, 3)


#: Ends while workers of a loader live, which have been forked when the decoder was at work already.
ENDS_EARLY = """
import sys
import caulk_clips
from torch.utils.data import DataLoader

caulk_clips.decode(sys.argv[1], [0])
loader = DataLoader(caulk_clips.ClipDataset(sys.argv[2]), num_workers=2, persistent_workers=True)
next(iter(loader))
kept = iter(loader)
next(kept)
"""


def test_a_program_ends_though_its_loaders_workers_live(prepared: Path, video: Path, clip_worker: Path) -> None:
    line = [sys.executable, "-c", ENDS_EARLY, str(video), str(prepared)]
    subprocess.run(line, env=program_environment(CAULK_CLIP=str(clip_worker)), timeout=60, check=True)


def test_a_decoder_that_dies_is_replaced(video: Path) -> None:
    caulk_clips.decode(video, [0])
    caulk_clips._worker._process.kill()
    with pytest.raises(caulk_clips.DecodeError, match="the decoder died"):
        caulk_clips.decode(video, [0])
    assert caulk_clips.decode(video, [0]).shape == (1, 112, 112, 3)


def test_decoding_as_a_whole_is_warned_of(tmp_path: Path, video: Path) -> None:
    path = videos.encode(tmp_path / "old.avi", 20, codec="mpeg4", parameters="", bf="2")
    with pytest.warns(UserWarning, match="decoded as a whole: packets without presentation times"):
        caulk_clips.decode(path, [3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caulk_clips.decode(video, [3])


def test_prepared_clips_are_mapped(prepared: Path) -> None:
    clips = caulk_clips.ClipDataset(prepared)
    clip, label = clips[2]
    assert len(clips) == 12 and clips.labels == ["fake", "real"] and label == 1
    assert clip.shape == (4, 48, 48, 3) and clip.dtype == torch.uint8
    original = caulk_clips.decode(prepared.parent / "1.mp4", 4, 48)
    assert np.array_equal(clip.numpy(), original)
    clip += 1
    assert np.array_equal(clips[2][0].numpy(), original)
    tensors = caulk_clips.ClipDataset(prepared.with_name("tensors"), tensors=False)
    assert np.array_equal(tensors[1][0], original)


def test_files_of_torch(prepared: Path) -> None:
    folder = prepared.with_name("torch")
    expected = [clip.numpy() for clip, _ in caulk_clips.ClipDataset(prepared)][::2]
    files = [folder / row["video_path"] for row in csv.DictReader((folder / "metadata.csv").open())]
    loaded = [torch.load(file, weights_only=True) for file in files]
    mapped = [clip for clip, _ in caulk_clips.ClipDataset(folder)]
    for clips in (loaded, mapped):
        assert all(clip.dtype == torch.uint8 and clip.is_contiguous() for clip in clips)
        assert all(np.array_equal(clip.numpy(), pixels) for clip, pixels in zip(clips, expected, strict=True))
    assert all(zipfile.ZipFile(file).testzip() is None for file in files)
    before = files[0].read_bytes()
    mapped[0].zero_()
    assert files[0].read_bytes() == before


def test_folds_are_sides_of_one_set(prepared: Path) -> None:
    sides = [caulk_clips.ClipDataset(prepared, fold=1, side=side) for side in ("train", "validation")]
    assert [len(side) for side in sides] == [8, 2]
    assert not set(sides[0]._files.tolist()) & set(sides[1]._files.tolist())


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_loaders_with_workers(prepared: Path, video: Path, start: str) -> None:
    caulk_clips.decode(video, [0])
    options = {"num_workers": 2, "multiprocessing_context": start}
    clips = caulk_clips.ClipDataset(prepared)
    batches = list(torch.utils.data.DataLoader(clips, batch_size=4, **options))
    assert [tuple(batch.shape) for batch, _ in batches] == [(4, 4, 48, 48, 3)] * 3
    live = caulk_clips.IterableClips([video] * 5, frames=[1, 2], size=32)
    seen = [
        int(index) for _, indices in torch.utils.data.DataLoader(live, batch_size=1, **options) for index in indices
    ]
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_examples_in_the_documentation_run() -> None:
    for module in (caulk_clips, caulk_clips._iterable):
        failed, tried = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
        assert tried and not failed


def test_memory_is_what_is_given(video: Path) -> None:
    with pytest.raises(caulk_clips.DecodeError, match="more than the 46 MB for one video"):
        caulk_clips.decode(video, range(60), (640, 640), memory=110_000_000)
    assert caulk_clips.decode(video, range(60), (640, 640), memory=400_000_000).shape == (60, 640, 640, 3)
    with pytest.raises(ValueError, match="memory 1 is not a number from 100663296"):
        caulk_clips.decode(video, [0], memory=1)


def test_ranks_share_videos(video: Path) -> None:
    def seen(rank: int, workers: int) -> list[int]:
        clips = caulk_clips.IterableClips([video] * 7, [0], 16, shard=(rank, 2))
        loader = torch.utils.data.DataLoader(clips, batch_size=None, num_workers=workers)
        return sorted(index for _, index in loader)

    for workers in (0, 2):
        assert [seen(rank, workers) for rank in (0, 1)] == [[0, 2, 4, 6], [1, 3, 5]]
    with pytest.raises(ValueError, match="rank, world_size"):
        caulk_clips.IterableClips([video], shard=(2, 2))
