"""Videos that fsspec reaches: copied to scratch one at a time, and the same clips as of files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import videos
from clipwork import CLIPS, contents
from clipwork import caulk as run
from harness import program_environment

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("torch")

import caulk_clips  # noqa: E402

pytestmark = pytest.mark.usefixtures("clip_worker")
OPTIONS = ("--frames", "4", "--size", "48", "--augment", "1", "--jobs", "2")
SCRATCH = ".caulk-scratch-*"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four videos as files, and the same in an archive; one set of them prepared."""
    place = tmp_path_factory.mktemp("urls")
    (place / "videos").mkdir()
    names = [f"videos/{number}.mp4" for number in range(4)]
    with zipfile.ZipFile(place / "videos.zip", "w") as archive:
        for name in names:
            archive.write(videos.encode(place / name, 20, size=(160, 96)), name)
    write(place / "videos.csv", names)
    run("prepare", "videos.csv", "--out", "local", *OPTIONS, cwd=place)
    return place


def write(manifest: Path, names: list[str]) -> None:
    manifest.write_text("\n".join(["video_path", *names]) + "\n")


def contents_without_scratch(folder: Path) -> dict[str, bytes]:
    assert not list(folder.glob(SCRATCH))
    return contents(folder)


def failures(folder: Path) -> dict[str, str]:
    lines = (folder / "failed.jsonl").read_text().splitlines()
    return {line["video"]: line["reason"] for line in map(json.loads, lines)}


def until(what: Callable[[], object]) -> None:
    limit = time.monotonic() + 60
    while not what():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_names_relative_to_a_url_give_the_same_set(place: Path) -> None:
    run("prepare", "videos.csv", "--out", "zipped", "--source", "zip://::videos.zip", *OPTIONS, cwd=place)
    assert contents_without_scratch(place / "zipped") == contents_without_scratch(place / "local")
    told = run("verify", "zipped", "--source", "zip://::videos.zip", cwd=place)
    assert "8 clips are as logged; their videos give the same" in told


def test_a_manifest_may_name_urls_beside_files(place: Path) -> None:
    url = "simplecache::zip://videos/1.mp4::videos.zip"
    write(place / "mixed.csv", ["videos/0.mp4", url, f"file://{place}/videos/2.mp4", "zip://none.mp4::videos.zip"])
    run("prepare", "mixed.csv", "--out", "mixed", *OPTIONS, cwd=place, code=1)
    # Originals depend on frames alone, and which ones were chosen here does not depend on the name.
    (row,) = [
        row for row in (place / "mixed/metadata.csv").read_text().splitlines() if url in row and row.endswith(",0")
    ]
    (same,) = [row for row in (place / "local/metadata.csv").read_text().splitlines() if "videos/1.mp4,0" in row]
    assert (place / "mixed" / row.split(",")[0]).read_bytes() == (place / "local" / same.split(",")[0]).read_bytes()
    (failed,) = failures(place / "mixed").items()
    assert failed[0] == "zip://none.mp4::videos.zip" and failed[1].startswith("cannot be fetched: ")


def test_a_video_beyond_the_limit_gives_no_clips(place: Path) -> None:
    words = ("--source", "zip://::videos.zip", "--scratch", "elsewhere", "--scratch-limit", "2KB")
    run("prepare", "videos.csv", "--out", "large", *words, *OPTIONS, cwd=place, code=1)
    reasons = set(failures(place / "large").values())
    assert reasons == {"cannot be fetched: it has more than the 0.001024 MB of scratch for one video"}
    assert not list((place / "elsewhere").iterdir())


def test_what_is_killed_leaves_nothing(place: Path) -> None:
    os.mkfifo(place / "endless.mp4")
    write(place / "endless.csv", [f"simplecache::file://{place}/endless.mp4"])
    out = place / "killed"
    line = [CLIPS, "prepare", "endless.csv", "--out", out, *OPTIONS]
    started = subprocess.Popen(line, cwd=place, env=program_environment())
    until(lambda: list(out.glob(SCRATCH + "/lock")))
    started.kill()
    started.wait()
    # What fetches is told by the end of its input, and goes, too.
    until(lambda: not list(out.glob(SCRATCH)))


def test_what_is_left_all_the_same_is_swept(place: Path) -> None:
    if not (place / "endless.mp4").exists():
        os.mkfifo(place / "endless.mp4")
    write(place / "endless.csv", [f"simplecache::file://{place}/endless.mp4"])
    out = place / "swept"
    line = [CLIPS, "prepare", "endless.csv", "--out", out, *OPTIONS]
    started = subprocess.Popen(line, cwd=place, env=program_environment(), start_new_session=True)
    until(lambda: list(out.glob(SCRATCH + "/lock")))
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    (left,) = out.glob(SCRATCH)
    run("prepare", "videos.csv", "--out", "swept", "--source", "zip://::videos.zip", *OPTIONS, cwd=place)
    assert not left.exists() and contents_without_scratch(out) == contents_without_scratch(place / "local")


def test_a_copy_that_takes_too_long_is_given_up(place: Path) -> None:
    if not (place / "endless.mp4").exists():
        os.mkfifo(place / "endless.mp4")
    slow = f"simplecache::file://{place}/endless.mp4"
    write(place / "slow.csv", [slow, "zip://videos/0.mp4::videos.zip"])
    words = ("--timeout", "5s", "--jobs", "1")
    run("prepare", "slow.csv", "--out", "slow", "--frames", "4", *words, cwd=place, code=1)
    assert failures(place / "slow") == {slow: "not done after 5 s"}


def test_without_fsspec_it_says_what_to_install(place: Path, tmp_path: Path) -> None:
    (tmp_path / "fsspec.py").write_text("raise ImportError('not here')\n")
    words = ("prepare", "videos.csv", "--out", "none", "--source", "zip://::videos.zip")
    told = run(*words, *OPTIONS, cwd=place, code=125, PYTHONPATH=str(tmp_path))
    assert "fsspec, which fetches videos by URL, is not installed" in told and "pip install fsspec" in told


def test_a_url_is_decoded_by_command(place: Path, tmp_path: Path) -> None:
    words = ("--select", "0,7", "--size", "160x96", "--output", tmp_path / "clip.npy", "--scratch", tmp_path)
    assert "frames 0,7 of 20" in run("decode", "zip://videos/3.mp4::videos.zip", *words, cwd=place)
    assert [videos.number_of(image) for image in np.load(tmp_path / "clip.npy")] == [0, 7]
    assert not list(tmp_path.glob(SCRATCH))


def test_urls_in_python(place: Path, tmp_path: Path) -> None:
    file = place / "videos/2.mp4"
    with fsspec.open("memory://set/2.mp4", "wb") as target:
        target.write(file.read_bytes())
    expected = caulk_clips.decode(file, [3, 1], 48)
    for url in ("memory://set/2.mp4", f"zip://videos/2.mp4::{place}/videos.zip", f"file://{file}"):
        assert np.array_equal(caulk_clips.decode(url, [3, 1], 48, scratch=tmp_path), expected), url
    live = caulk_clips.IterableClips(["memory://set/2.mp4"], [3, 1], 48, scratch=tmp_path)
    assert [np.array_equal(clip.numpy(), expected) for clip, _ in live] == [True]
    for url, limit, why in (
        ("memory://set/2.mp4", 1000, "more than the 0.001 MB of scratch"),
        ("memory://set/none.mp4", 1 << 30, "cannot be fetched: FileNotFoundError"),
        ("nonsense://a.mp4", 1 << 30, "Protocol not known"),
    ):
        with pytest.raises(caulk_clips.DecodeError, match=why):
            caulk_clips.decode(url, [0], scratch=tmp_path, scratch_limit=limit)
    assert not list(tmp_path.iterdir())
