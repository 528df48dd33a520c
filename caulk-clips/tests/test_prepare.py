"""`caulk clips prepare` and what follows from it: the same set, whatever stops it and whoever shares the work."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import videos
from clipwork import CLIPS, NEEDED, OPTIONS, caulk, contents
from harness import program_environment

pytestmark = NEEDED


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve videos and one that is none, with a manifest."""
    place = tmp_path_factory.mktemp("set")
    (place / "videos").mkdir()
    rows = ["video_path,label,person"]
    for number in range(12):
        name = f"videos/{number}.mp4"
        videos.encode(place / name, 30 + number, size=(160, 96))
        rows.append(f"{name},{'real' if number % 2 else 'fake'},{number // 2}")
    (place / "videos/bad.mp4").write_bytes(b"nothing")
    rows.append("videos/bad.mp4,real,9")
    (place / "videos.csv").write_text("\n".join(rows) + "\n")
    return place


@pytest.fixture(scope="module")
def prepared(data_set: Path) -> Path:
    told = caulk("prepare", "videos.csv", "--out", "once", *OPTIONS, cwd=data_set, code=1)
    assert "36 clips of 12 videos" in told and "1 videos gave no clips" in told
    return data_set / "once"


def test_a_set_is_prepared(prepared: Path) -> None:
    rows = list(csv.DictReader((prepared / "metadata.csv").open()))
    assert [*rows[0]] == ["video_path", "label", "original_video", "augmentation_idx"]
    assert len(rows) == 36 and rows[4]["original_video"] == "videos/1.mp4" and rows[4]["label"] == "real"
    assert [row["augmentation_idx"] for row in rows[:3]] == ["0", "1", "2"]
    clips = [np.load(prepared / row["video_path"], mmap_mode="r") for row in rows]
    assert {clip.shape for clip in clips} == {(4, 48, 48, 3)} and clips[0].dtype == np.uint8
    assert len({clip.tobytes() for clip in clips}) == 36
    failed = [json.loads(line) for line in (prepared / "failed.jsonl").read_text().splitlines()]
    assert [each["video"] for each in failed] == ["videos/bad.mp4"]


def test_the_same_clips_with_any_number_of_workers_in_any_folder(
    prepared: Path, data_set: Path, tmp_path: Path
) -> None:
    os.rename(data_set, tmp_path / "moved")
    try:
        caulk("prepare", "moved/videos.csv", "--out", "other", *OPTIONS, "--jobs", "1", cwd=tmp_path, code=1)
    finally:
        os.rename(tmp_path / "moved", data_set)
    assert contents(tmp_path / "other") == contents(prepared)


def test_what_is_stopped_anywhere_ends_the_same(prepared: Path, data_set: Path) -> None:
    line = [CLIPS, "prepare", "videos.csv", "--out", "stopped", *OPTIONS, "--jobs", "2"]
    draw = random.Random(7)
    for _ in range(5):
        run = subprocess.Popen(line, cwd=data_set, env=program_environment(), stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.02, 0.4))
        run.send_signal(signal.SIGKILL)
        run.wait()
    caulk(*line[1:], cwd=data_set, code=1)
    files = contents(data_set / "stopped")
    assert files == contents(prepared)


def test_a_video_that_takes_too_long_is_given_up(prepared: Path, data_set: Path) -> None:
    rows = (data_set / "videos.csv").read_text().splitlines()
    (data_set / "slow.csv").write_text("\n".join([rows[0], "endless.mp4,real,9", rows[1], rows[2]]) + "\n")
    # Opened, it waits for somebody who writes to it.
    os.mkfifo(data_set / "endless.mp4")
    words = ("prepare", "slow.csv", "--out", "slow", *OPTIONS, "--jobs", "1", "--timeout", "5s")
    told = caulk(*words, cwd=data_set, code=1)
    assert "6 clips of 2 videos" in told
    failed = [json.loads(line) for line in (data_set / "slow/failed.jsonl").read_text().splitlines()]
    assert failed == [{"video": "endless.mp4", "reason": "not done after 5 s"}]


def test_more_augmentations_are_added(prepared: Path, data_set: Path) -> None:
    few = ("prepare", "videos.csv", "--out", "grown", "--frames", "4", "--size", "48", "--augment")
    caulk(*few, "1", cwd=data_set, code=1)
    caulk(*few, "2", cwd=data_set, code=1)
    assert contents(data_set / "grown")["metadata.csv"] == contents(prepared)["metadata.csv"]


def test_corrected_labels_are_taken(data_set: Path) -> None:
    text = (data_set / "videos.csv").read_text()
    (data_set / "corrected.csv").write_text(text.replace("1.mp4,real", "1.mp4,fake"))
    caulk("prepare", "videos.csv", "--out", "relabelled", *OPTIONS, cwd=data_set, code=1)
    told = [
        caulk("prepare", "corrected.csv", "--out", out, *OPTIONS, cwd=data_set, code=1)
        for out in ("relabelled", "correct")
    ]
    assert "0 clips of 0 videos" in told[0] and "36 clips of 12 videos" in told[1]
    rows = list(csv.DictReader((data_set / "relabelled/metadata.csv").open()))
    assert {row["label"] for row in rows if row["original_video"] == "videos/1.mp4"} == {"fake"}
    assert contents(data_set / "relabelled") == contents(data_set / "correct")


@pytest.mark.parametrize("parts", [[()], [("--shard", "0/2"), ("--shard", "1/2")]], ids=["alone", "shards"])
def test_clips_that_are_gone_are_made_again(prepared: Path, data_set: Path, parts: list[tuple[str, ...]]) -> None:
    out = data_set / f"lost-{len(parts)}"
    words = ("prepare", "videos.csv", "--out", out.name, *OPTIONS)
    for part in parts:
        caulk(*words, *part, cwd=data_set, code=int("1/2" not in part))
    before, clips = contents(out), sorted((out / "clips").rglob("*.npy"))
    clips[3].unlink()
    clips[20].write_bytes(clips[20].read_bytes()[:-1])
    told = "".join(caulk(*words, *part, cwd=data_set, code=int("1/2" not in part)) for part in parts)
    assert contents(out) == before
    assert sum(int(count) for count in re.findall(r"(\d) clips of", told)) == 2
    assert "36 clips are as logged" in caulk("verify", out.name, cwd=data_set)


def test_a_lost_clip_that_cannot_be_made_again_is_in_no_table(prepared: Path, data_set: Path) -> None:
    row = "videos/going.mp4"
    (data_set / row).write_bytes((data_set / "videos/3.mp4").read_bytes())
    (data_set / "going.csv").write_text(f"video_path\n{row}\nvideos/1.mp4\n")
    words = ("prepare", "going.csv", "--out", "going", *OPTIONS)
    caulk(*words, cwd=data_set)
    (data_set / row).unlink()
    next((data_set / "going/clips").rglob("going-*-1.npy")).unlink()
    caulk(*words, cwd=data_set, code=1)
    rows = list(csv.DictReader((data_set / "going/metadata.csv").open()))
    assert [each["augmentation_idx"] for each in rows if each["original_video"] == row] == ["0", "2"]
    assert "5 clips are as logged" in caulk("verify", "going", cwd=data_set)


def test_another_manifest_keeps_what_the_first_one_made(prepared: Path, data_set: Path) -> None:
    rows = (data_set / "videos.csv").read_text().splitlines()
    for name, some in (("early.csv", rows[1:5]), ("late.csv", rows[5:8])):
        (data_set / name).write_text("\n".join([rows[0], *some]) + "\n")

    def prepare(manifest: str, *more: str) -> str:
        return caulk("prepare", manifest, "--out", "kept", *OPTIONS, *more, cwd=data_set)

    def videos_told() -> int:
        return len(list(csv.DictReader((data_set / "kept/metadata.csv").open()))) // 3

    assert "12 clips of 4 videos" in prepare("early.csv")
    assert "9 clips of 3 videos" in prepare("late.csv")
    assert videos_told() == 3 and "21 clips are as logged" in caulk("verify", "kept", cwd=data_set)
    for more in ((), ("--shard", "0/2"), ("--shard", "1/2")):
        assert "0 clips of 0 videos" in prepare("early.csv", *more)
        assert videos_told() == 4 and "21 clips are as logged" in caulk("verify", "kept", cwd=data_set)
    told = caulk("prepare", "videos.csv", "--out", "kept", *OPTIONS, cwd=data_set, code=1)
    assert "15 clips of 5 videos" in told
    assert (data_set / "kept/clips.jsonl").read_text() == (prepared / "clips.jsonl").read_text()
    same_set(data_set / "kept", prepared)


def test_shards_share_a_folder(prepared: Path, data_set: Path) -> None:
    for shard in ("0/2", "1/2"):
        code = 1 if shard == "0/2" else 0
        caulk("prepare", "videos.csv", "--out", "shared", *OPTIONS, "--shard", shard, cwd=data_set, code=code)
    shared, once = contents(data_set / "shared"), contents(prepared)
    assert shared["metadata.csv"] == once["metadata.csv"]
    assert {name: data for name, data in shared.items() if name.startswith("clips/")} == {
        name: data for name, data in once.items() if name.startswith("clips/")
    }
    for _ in range(2):
        # What shards have logged is logged once in all.
        caulk("prepare", "videos.csv", "--out", "shared", *OPTIONS, cwd=data_set, code=1)
        assert contents(data_set / "shared")["clips.jsonl"] == once["clips.jsonl"]


def same_set(folder: Path, other: Path) -> None:
    """Tables and clips are the same; how the logs are divided says nothing."""

    def compared(folder: Path) -> dict[str, bytes]:
        return {name: data for name, data in contents(folder).items() if not name.endswith(".jsonl")}

    assert compared(folder) == compared(other)


@pytest.mark.parametrize("turn", range(4))
def test_shards_that_run_together_end_like_one_program(prepared: Path, data_set: Path, turn: int) -> None:
    out = f"together-{turn}"
    line = [CLIPS, "prepare", "videos.csv", "--out", out, *OPTIONS, "--jobs", "1", "--shard"]
    for codes in ([1, 0, 0, 0], [1, 0, 0, 0]):
        # The second time there is nothing left to do but the tables, and all come to them at once.
        runs = [subprocess.Popen([*line, f"{part}/4"], cwd=data_set, env=program_environment()) for part in range(4)]
        assert [run.wait(60) for run in runs] == codes
        same_set(data_set / out, prepared)
    assert "36 clips are as logged" in caulk("verify", out, cwd=data_set)


def test_leftovers_of_killed_shards_are_swept(prepared: Path, data_set: Path) -> None:
    out = data_set / "swept"
    (out / "clips/be").mkdir(parents=True)
    for name in ("metadata.csv.0-of-4.17.partial", "clips/be/gone-beb2b83acde8-0.npy.17.partial"):
        (out / name).write_bytes(b"half")
    caulk("prepare", "videos.csv", "--out", "swept", *OPTIONS, cwd=data_set, code=1)
    assert contents(out) == contents(prepared)


def test_a_set_is_divided_in_one_way_at_a_time(data_set: Path) -> None:
    # Opened, it waits for somebody who writes to it: the shard of the first video does not end.
    os.mkfifo(data_set / "waiting.mp4")
    (data_set / "waiting.csv").write_text("video_path\nwaiting.mp4\nvideos/1.mp4\n")
    line = [CLIPS, "prepare", "waiting.csv", "--out", "divided", *OPTIONS, "--shard"]
    run = subprocess.Popen([*line, "0/2"], cwd=data_set, env=program_environment(), stderr=subprocess.DEVNULL)
    try:
        while not (data_set / "divided/metadata.csv").exists():
            time.sleep(0.01)
        assert "another `caulk clips prepare` is writing" in caulk(*line[1:-1], cwd=data_set, code=125)
        assert "in 2 shards, not in 3" in caulk(*line[1:], "1/3", cwd=data_set, code=125)
        assert "another `caulk clips prepare` is writing" in caulk(*line[1:], "0/2", cwd=data_set, code=125)
        caulk(*line[1:], "1/2", cwd=data_set)
    finally:
        run.kill()
        run.wait()
    caulk(*line[1:], "1/3", cwd=data_set)


def test_failures_are_listed_as_they_come(tmp_path: Path) -> None:
    names = ["bad-1.mp4", "endless-1.mp4", "bad-2.mp4", "endless-2.mp4"]
    for name in names:
        # Opened, a pipe waits for somebody who writes to it.
        make = Path.touch if name.startswith("bad") else os.mkfifo
        make(tmp_path / name)
    (tmp_path / "videos.csv").write_text("\n".join(["video_path", *names]) + "\n")
    line = [CLIPS, "prepare", "videos.csv", "--out", "out", "--jobs", "1", "--timeout", "2s"]
    run = subprocess.Popen(line, cwd=tmp_path, env=program_environment(), stderr=subprocess.DEVNULL)
    listed, files = tmp_path / "out/failed.jsonl", {}
    while run.poll() is None and 3 not in files:
        time.sleep(0.01)
        if listed.exists():
            files[listed.read_text().count("\n")] = listed.stat().st_ino
    # Appended to, not written anew for each.
    assert {1, 3} <= set(files) and len(set(files.values())) == 1
    assert run.wait(60) == 1
    assert [json.loads(line)["video"] for line in listed.read_text().splitlines()] == names


def test_other_settings_want_another_folder(prepared: Path, data_set: Path) -> None:
    told = caulk("prepare", "videos.csv", "--out", "once", "--frames", "5", "--size", "48", cwd=data_set, code=125)
    assert "holds clips of other settings" in told


@pytest.mark.parametrize("changed, told", [({"pipeline": 0}, "pipeline 0"), ({"ffmpeg": "4.0"}, "FFmpeg 4.0")])
def test_clips_of_another_version_are_refused(
    prepared: Path, data_set: Path, changed: dict[str, object], told: str
) -> None:
    log = prepared / "clips.jsonl"
    text = log.read_text()
    head, rest = text.split("\n", 1)
    log.write_text(json.dumps({**json.loads(head), **changed}) + "\n" + rest)
    try:
        refused = caulk("verify", "once", "--source", ".", cwd=data_set, code=125)
        assert told in refused and "hint: without --source the files are compared" in refused
        assert "36 clips are as logged" in caulk("verify", "once", cwd=data_set)
        assert "holds clips of other settings" in caulk(
            "prepare", "videos.csv", "--out", "once", *OPTIONS, cwd=data_set, code=125
        )
    finally:
        log.write_text(text)


def test_a_manifest_as_spreadsheets_write_it(data_set: Path, tmp_path: Path) -> None:
    names = ["plain.mp4", "with space.mp4", "with,comma.mp4", 'with "quote".mp4', "ünï 视频.mp4", "two\nlines.mp4"]
    for name in names:
        (tmp_path / name).write_bytes((data_set / "videos/3.mp4").read_bytes())
    absolute = str(data_set / "videos/4.mp4")
    rows = [["label", "video_path", "note"], *[["real", name, ""] for name in [*names, absolute]]]
    with (tmp_path / "videos.csv").open("w", encoding="utf-8-sig", newline="") as table:
        csv.writer(table).writerows(rows)
    assert b"\r\n" in (tmp_path / "videos.csv").read_bytes()
    caulk("prepare", "videos.csv", "--out", "out", "--frames", "2", "--size", "16", cwd=tmp_path)
    with (tmp_path / "out/metadata.csv").open(newline="", encoding="utf-8") as table:
        made = list(csv.DictReader(table))
    assert [row["original_video"] for row in made] == [*names, absolute]
    assert all((tmp_path / "out" / row["video_path"]).is_file() for row in made)
    assert "7 clips are as logged" in caulk("verify", "out", "--source", ".", cwd=tmp_path)


@pytest.mark.parametrize(
    "text, told",
    [
        ("file,label\na.mp4,x\n", "no column `video_path`; there are: file, label"),
        ("", "no column `video_path`"),
        ("video_path,label\na.mp4\n", "line 2: 1 cells, the head has 2"),
        ("video_path\na.mp4\nb.mp4\na.mp4\n", "line 4: `a.mp4` is in line 2 already"),
        ('video_path\n"a.mp4\n', "line 2: a quote is not closed"),
        ("video_path;label\na.mp4;x\n", "cells are divided by commas"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_what_to_mend(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "videos.csv").write_text(text)
    assert told in caulk("prepare", "videos.csv", "--out", "out", cwd=tmp_path, code=125)
    assert not (tmp_path / "out").exists()


def test_a_manifest_without_rows_makes_an_empty_set(tmp_path: Path) -> None:
    (tmp_path / "videos.csv").write_text("video_path,label\n")
    assert "0 clips of 0 videos" in caulk("prepare", "videos.csv", "--out", "out", cwd=tmp_path)
    assert (tmp_path / "out/metadata.csv").read_text() == "video_path,label,original_video,augmentation_idx\n"


def test_changed_clips_are_told(prepared: Path, data_set: Path) -> None:
    assert "36 clips are as logged" in caulk("verify", "once", cwd=data_set)
    clip = next((prepared / "clips").rglob("*.npy"))
    data = clip.read_bytes()
    clip.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    told = caulk("verify", "once", cwd=data_set, code=1)
    clip.write_bytes(data)
    assert "changed  clips/" in told and "35 clips are as logged" in told


def test_frames_are_snapped_to_cheaper_ones(tmp_path: Path) -> None:
    plain = videos.encode(tmp_path / "plain.mp4", 120)
    line = ("decode", plain, "--frames", "3", "--select", "0,47,99", "--size", "320x180", "-o", "clip.npy")
    assert "frames 0,47,99 of 120" in caulk(*line, cwd=tmp_path)
    assert "frames 0,50,100 of 120" in caulk(*line, "--snap", "5", cwd=tmp_path)
    assert [videos.number_of(image) for image in np.load(tmp_path / "clip.npy")] == [0, 50, 100]
    (tmp_path / "videos.csv").write_text(f"video_path\n{plain}\n")
    caulk("prepare", "videos.csv", "--out", "out", "--select", "0,47,99", "--snap", "5", cwd=tmp_path)
    clip = json.loads((tmp_path / "out/clips.jsonl").read_text().splitlines()[1])["clips"][0]
    assert (clip["frames"], clip["meant"]) == ([0, 50, 100], [0, 47, 99])


def test_clips_are_made_anew_from_their_videos(prepared: Path, data_set: Path) -> None:
    before = contents(prepared)
    words = ("verify", "once", "--source", ".", "--jobs", "2")
    assert "36 clips are as logged; their videos give the same" in caulk(*words, cwd=data_set)
    video, other = data_set / "videos/3.mp4", data_set / "videos/4.mp4"
    data = video.read_bytes()
    video.write_bytes(other.read_bytes())
    told = caulk(*words, cwd=data_set, code=1)
    video.write_bytes(data)
    assert told.count("differs  clips/") == told.count("its video gives another clip") == 3
    assert "36 clips are as logged\n" in told and contents(prepared) == before


def test_folds_keep_groups_whole(prepared: Path, data_set: Path) -> None:
    caulk("split", "videos.csv", "--out", "once", "--folds", "3", "--group", "person", cwd=data_set)
    rows = {row["video_path"]: row for row in csv.DictReader((prepared / "metadata.csv").open())}
    people = {row["video_path"]: row["person"] for row in csv.DictReader((data_set / "videos.csv").open())}
    validated: list[str] = []
    for number in range(3):
        fold = json.loads((prepared / f"folds/fold-{number}.json").read_text())
        train, validation = (
            {people[rows[clip]["original_video"]] for clip in fold[side]} for side in ("train", "validation")
        )
        assert not train & validation
        assert all(rows[clip]["augmentation_idx"] == "0" for clip in fold["validation"])
        validated += [rows[clip]["original_video"] for clip in fold["validation"]]
    assert sorted(validated) == sorted({row["original_video"] for row in rows.values()})
    for number in range(3):
        (prepared / f"folds/fold-{number}.json").unlink()
    (prepared / "folds").rmdir()


def test_a_second_program_is_refused(data_set: Path) -> None:
    import fcntl

    (data_set / "busy").mkdir()
    with (data_set / "busy/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = caulk("prepare", "videos.csv", "--out", "busy", *OPTIONS, cwd=data_set, code=125)
    assert "another `caulk clips prepare` is writing" in told


#: Another value means other clips for everybody: then the pipeline's version has to change, too.
GOLDEN = "a0956ea7011fcfa4"


@pytest.mark.parametrize("portable", [{}, {"CAULK_CLIP_PORTABLE": "1"}], ids=["vectors", "none"])
def test_clips_are_the_same_on_every_machine_for_ever(tmp_path: Path, portable: dict[str, str]) -> None:
    (tmp_path / "videos.csv").write_text("video_path\ntiny.mp4\n")
    (tmp_path / "tiny.mp4").write_bytes((Path(__file__).parent / "data/tiny.mp4").read_bytes())
    words = ["prepare", "videos.csv", "--out", "out", "--frames", "4", "--size", "40x28", "--augment", "3"]
    words += ["--operations", "flip,crop,rotation,color,blur,noise,temporal-jitter,frame-drop"]
    environment = program_environment(**portable)
    subprocess.run([CLIPS, *words], cwd=tmp_path, env=environment, check=True, capture_output=True)
    clips = json.loads((tmp_path / "out/clips.jsonl").read_text().splitlines()[1])["clips"]
    assert hashlib.sha256("".join(clip["sha256"] for clip in clips).encode()).hexdigest()[:16] == GOLDEN
