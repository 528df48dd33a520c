"""`caulk.clips`: frames as arrays, prepared clips and clips on the fly as data sets."""

from __future__ import annotations

import csv
import doctest
import subprocess
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import videos
from harness import CAULK, program_environment

torch = pytest.importorskip("torch")

import caulk._iterclips  # noqa: E402
import caulk.clips  # noqa: E402

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
        subprocess.run([CAULK, "clips", *words], cwd=place, env=program_environment(), check=True, capture_output=True)
    return place / "out"


def test_frames_come_in_the_order_asked(video: Path) -> None:
    frames = caulk.clips.decode(video, [41, 7, 7, 0], size=None)
    assert frames.shape == (4, 180, 320, 3) and frames.dtype == np.uint8
    assert [videos.number_of(frame) for frame in frames] == [41, 7, 7, 0]
    assert np.array_equal(frames[1], frames[2])


def test_sizes_and_selections(video: Path) -> None:
    assert caulk.clips.decode(video, 6, (90, 160)).shape == (6, 90, 160, 3)
    shown = [videos.number_of(frame) for frame in caulk.clips.decode(video, 4, None)]
    assert shown == [0, 19, 39, 59]
    shown = [videos.number_of(frame) for frame in caulk.clips.decode(video, 3, None, select="stride:10")]
    assert shown == [0, 10, 20]
    first = caulk.clips.decode(video, 5, select="random", seed=3)
    assert np.array_equal(first, caulk.clips.decode(video, 5, select="random", seed=3))


def test_a_global_seed_is_neither_used_nor_changed(video: Path) -> None:
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    caulk.clips.decode(video, 5, select="random")
    assert np.array_equal(before, np.random.get_state()[1])


def test_errors_say_what_is_wrong(video: Path) -> None:
    with pytest.raises(caulk.clips.DecodeError, match="frame 60 was asked for; the video has 60 frames"):
        caulk.clips.decode(video, [60])
    with pytest.raises(ValueError, match="none of uniform"):
        caulk.clips.decode(video, 3, select="some")
    with pytest.raises(ValueError, match="no frames"):
        caulk.clips.decode(video, [])


def test_a_decoder_that_dies_is_replaced(video: Path) -> None:
    caulk.clips.decode(video, [0])
    caulk.clips._worker._process.kill()
    with pytest.raises(caulk.clips.DecodeError, match="the decoder died"):
        caulk.clips.decode(video, [0])
    assert caulk.clips.decode(video, [0]).shape == (1, 112, 112, 3)


def test_decoding_as_a_whole_is_warned_of(tmp_path: Path, video: Path) -> None:
    path = videos.encode(tmp_path / "old.avi", 20, codec="mpeg4", parameters="", bf="2")
    with pytest.warns(UserWarning, match="decoded as a whole: packets without presentation times"):
        caulk.clips.decode(path, [3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caulk.clips.decode(video, [3])


def test_prepared_clips_are_mapped(prepared: Path) -> None:
    clips = caulk.clips.ClipDataset(prepared)
    clip, label = clips[2]
    assert len(clips) == 12 and clips.labels == ["fake", "real"] and label == 1
    assert clip.shape == (4, 48, 48, 3) and clip.dtype == torch.uint8
    original = caulk.clips.decode(prepared.parent / "1.mp4", 4, 48)
    assert np.array_equal(clip.numpy(), original)
    clip += 1
    assert np.array_equal(clips[2][0].numpy(), original)
    tensors = caulk.clips.ClipDataset(prepared.with_name("tensors"), tensors=False)
    assert np.array_equal(tensors[1][0], original)


def test_files_of_torch(prepared: Path) -> None:
    folder = prepared.with_name("torch")
    expected = [clip.numpy() for clip, _ in caulk.clips.ClipDataset(prepared)][::2]
    files = [folder / row["video_path"] for row in csv.DictReader((folder / "metadata.csv").open())]
    loaded = [torch.load(file, weights_only=True) for file in files]
    mapped = [clip for clip, _ in caulk.clips.ClipDataset(folder)]
    for clips in (loaded, mapped):
        assert all(clip.dtype == torch.uint8 and clip.is_contiguous() for clip in clips)
        assert all(np.array_equal(clip.numpy(), pixels) for clip, pixels in zip(clips, expected, strict=True))
    assert all(zipfile.ZipFile(file).testzip() is None for file in files)
    before = files[0].read_bytes()
    mapped[0].zero_()
    assert files[0].read_bytes() == before


def test_folds_are_sides_of_one_set(prepared: Path) -> None:
    sides = [caulk.clips.ClipDataset(prepared, fold=1, side=side) for side in ("train", "validation")]
    assert [len(side) for side in sides] == [8, 2]
    assert not set(sides[0]._files.tolist()) & set(sides[1]._files.tolist())


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_loaders_with_workers(prepared: Path, video: Path, start: str) -> None:
    caulk.clips.decode(video, [0])
    options = {"num_workers": 2, "multiprocessing_context": start}
    clips = caulk.clips.ClipDataset(prepared)
    batches = list(torch.utils.data.DataLoader(clips, batch_size=4, **options))
    assert [tuple(batch.shape) for batch, _ in batches] == [(4, 4, 48, 48, 3)] * 3
    live = caulk.clips.IterableClips([video] * 5, frames=[1, 2], size=32)
    seen = [
        int(index) for _, indices in torch.utils.data.DataLoader(live, batch_size=1, **options) for index in indices
    ]
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_examples_in_the_documentation_run() -> None:
    for module in (caulk.clips, caulk._iterclips):
        failed, tried = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
        assert tried and not failed
