"""`caulk clips` on videos of every awkward kind: exactly the frames of a full decode, whatever stops it."""

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
from typing import Any

import numpy as np
import pytest
import videos
from harness import CAULK, program_environment

WORKER = CAULK.with_name("caulk-clip")
pytestmark = pytest.mark.skipif(not WORKER.exists(), reason="built without FFmpeg")
X264 = videos.X264
OPEN = "bframes=3:keyint=30:scenecut=0:open-gop=1:b-pyramid=normal"


class Worker:
    """The worker as caulk talks to it."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([WORKER], stdin=pipe, stdout=pipe)

    def close(self) -> int:
        with self.process:
            pass
        return self.process.returncode

    def decode(self, path: Path, frames: list[int], size: int | None = None, **more: Any) -> dict:
        """The answer, with the pictures under `images`."""
        shape = {"width": size, "height": size} if size else None
        ask = {"path": str(path), "selection": {"explicit": frames}, "frames": 1, "size": shape, **more}
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"decode": ask}).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if pictures := answer.get("pictures"):
            data = np.frombuffer(self.process.stdout.read(pictures["bytes"]), np.uint8)
            shape = pictures["size"]
            answer["images"] = data.reshape(len(frames), shape["height"], shape["width"], 3)
        return answer


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    assert worker.close() == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    return videos.encode(folder / "plain.mp4", 120)


@pytest.fixture(scope="module")
def open_groups(folder: Path) -> Path:
    return videos.encode(folder / "open.mp4", 120, parameters=OPEN)


@pytest.fixture(scope="module")
def hevc(folder: Path) -> Path:
    return videos.encode(
        folder / "hevc.mp4", 90, codec="libx265", parameters="keyint=30:bframes=4:log-level=none:pools=1"
    )


def check(worker: Worker, path: Path, count: int | None = None, turn: int = 0, whole: bool = False) -> None:
    """Frames by number, alone and together, are those of two full decodes: PyAV's by what they show, our own by the byte."""
    expected = videos.full_decode(path)
    assert count is None or len(expected) == count
    everything = worker.decode(path, list(range(len(expected))), sequential=True)
    assert everything["pictures"]["total"] == len(expected), everything
    draw = random.Random(str(path.name))
    some = [[frame] for frame in draw.sample(range(len(expected)), min(12, len(expected)))]
    some += [draw.choices(range(len(expected)), k=6) for _ in range(4)] + [[len(expected) - 1, 0]]
    for frames in some:
        answer = worker.decode(path, frames)
        assert whole or "sequential" not in answer, answer["sequential"]
        shown = [videos.number_of(np.rot90(image, turn)) for image in answer["images"]]
        assert shown == [expected[frame] for frame in frames]
        for frame, image in zip(frames, answer["images"]):
            assert np.array_equal(image, everything["images"][frame]), (path.name, frame)


def test_a_constant_rate(worker: Worker, plain: Path) -> None:
    check(worker, plain, 120)


@pytest.mark.parametrize("ending", ["mkv", "mov", "ts", "flv"])
def test_other_containers(worker: Worker, plain: Path, ending: str) -> None:
    check(worker, videos.copy(plain, plain.with_suffix(f".{ending}")), 120)


def test_fragments(worker: Worker, plain: Path) -> None:
    path = plain.with_name("fragments.mp4")
    check(worker, videos.copy(plain, path, options={"movflags": "frag_keyframe+empty_moov"}), 120)


def test_a_variable_rate(worker: Worker, folder: Path) -> None:
    check(worker, videos.encode(folder / "vfr.mp4", 100, times=lambda i: 2 * i + (i % 7 == 3)), 100)


def test_one_long_group(worker: Worker, folder: Path) -> None:
    parameters = "bframes=8:keyint=1000:scenecut=0:b-pyramid=normal"
    check(worker, videos.encode(folder / "long.mp4", 150, parameters=parameters), 150)


@pytest.mark.parametrize("ending", ["mp4", "ts", "mkv"])
def test_open_groups(worker: Worker, open_groups: Path, ending: str) -> None:
    path = open_groups.with_name(f"copied.{ending}")
    check(worker, videos.copy(open_groups, path), 120)


def test_a_cut_out_of_open_groups(worker: Worker, open_groups: Path) -> None:
    first, shift = videos.keys(open_groups)[2]
    path = open_groups.with_name("cut.mp4")
    check(worker, videos.copy(open_groups, path, lambda at, packet: at >= first, shift))


def test_a_cut_out_of_hevc(worker: Worker, hevc: Path) -> None:
    first, shift = videos.keys(hevc)[1]
    path = hevc.with_name("hevc-cut.mp4")
    check(worker, videos.copy(hevc, path, lambda at, packet: at >= first, shift))


def test_an_edit_list_that_trims(worker: Worker, plain: Path) -> None:
    first, start = videos.keys(plain)[1]
    path, tick = plain.with_name("edit.mp4"), 512
    options = {"avoid_negative_ts": "disabled"}
    videos.copy(plain, path, lambda at, packet: at >= first, start + 17 * tick, options)
    check(worker, path, 120 - 50 - 17)


@pytest.mark.parametrize("degrees, turn", [(90, 1), (180, 2), (270, 3)])
def test_turned_pictures(worker: Worker, folder: Path, degrees: int, turn: int) -> None:
    path = videos.turned(videos.encode(folder / f"turned-{degrees}.mp4", 30), degrees)
    answer = worker.decode(path, [7])
    upright = np.rot90(answer["images"][0], turn)
    assert upright.shape == (180, 320, 3) and videos.number_of(upright) == 7


def test_odd_sizes(worker: Worker, folder: Path) -> None:
    check(worker, videos.encode(folder / "odd.mp4", 40, size=(322, 182)), 40)
    assert worker.decode(folder / "odd.mp4", [3], size=113)["images"].shape == (1, 113, 113, 3)


@pytest.mark.parametrize(
    "name, codec, options",
    [
        ("vp9.webm", "libvpx-vp9", {"g": "40", "cpu-used": "8"}),
        ("vp9.mp4", "libvpx-vp9", {"g": "40", "auto-alt-ref": "1", "lag-in-frames": "16", "cpu-used": "8"}),
        ("vp8.webm", "libvpx", {"g": "40", "auto-alt-ref": "1", "lag-in-frames": "16", "cpu-used": "8"}),
        ("mpeg4.mp4", "mpeg4", {"bf": "2", "g": "30"}),
        ("mpeg2.ts", "mpeg2video", {"bf": "2", "g": "30"}),
        ("mjpeg.avi", "mjpeg", {}),
        ("prores.mov", "prores", {}),
        ("av1.mp4", "libsvtav1", {"preset": "12", "g": "40", "svtav1-params": "lp=1"}),
        ("av1.mkv", "libsvtav1", {"preset": "12", "g": "40", "svtav1-params": "lp=1:film-grain=8"}),
        ("wmv1.wmv", "wmv1", {"g": "30"}),
        ("wmv2.wmv", "wmv2", {"g": "30"}),
        ("flv1.flv", "flv", {"g": "30"}),
        ("ffv1.mkv", "ffv1", {}),
    ],
)
def test_other_codecs(worker: Worker, folder: Path, name: str, codec: str, options: dict[str, str]) -> None:
    check(worker, videos.encode(folder / name, 60, codec=codec, parameters="", **options), 60)


@pytest.mark.parametrize(
    "name, codec, layout, options",
    [
        ("divx.avi", "mpeg4", "yuv420p", {"bf": "2", "g": "30", "vtag": "DX50"}),
        ("divx3.avi", "msmpeg4", "yuv420p", {"g": "30"}),
        ("h264.avi", "libx264", "yuv420p", {"x264-params": X264}),
        ("mpeg2.mpg", "mpeg2video", "yuv420p", {"bf": "2", "g": "30"}),
        ("mpeg1.mpg", "mpeg1video", "yuv420p", {"bf": "2", "g": "30"}),
        ("animated.gif", "gif", "rgb8", {}),
        ("bare.h264", "libx264", "yuv420p", {"x264-params": X264}),
    ],
)
def test_what_old_containers_tell_is_enough_or_everything_is_decoded(
    worker: Worker, folder: Path, name: str, codec: str, layout: str, options: dict[str, str]
) -> None:
    path = videos.encode(folder / name, 60, codec=codec, parameters="", layout=layout, **options)
    check(worker, path, 60, whole=True)


def test_a_telephones_video_has_sound_and_is_turned(worker: Worker, folder: Path) -> None:
    path = videos.turned(videos.with_sound(videos.encode(folder / "upright.mov", 50), folder / "phone.mov"), 90)
    check(worker, path, 50, turn=1)


def test_hevc(worker: Worker, hevc: Path) -> None:
    check(worker, hevc, 90)
    check(worker, videos.copy(hevc, hevc.with_suffix(".ts")), 90)


@pytest.mark.parametrize("ending", ["mp4", "ts"])
@pytest.mark.parametrize("order", ["tff", "bff"])
def test_interlaced_pictures_are_decoded_as_a_whole(worker: Worker, folder: Path, ending: str, order: str) -> None:
    path = folder / f"interlaced-{order}.{ending}"
    check(worker, videos.encode(path, 60, parameters=f"{videos.X264}:{order}=1"), 60, whole=True)


def test_interlaced_mpeg2(worker: Worker, folder: Path) -> None:
    options = {"codec": "mpeg2video", "parameters": "", "bf": "2", "g": "30", "flags": "+ildct+ilme"}
    check(worker, videos.encode(folder / "interlaced-mpeg2.ts", 60, **options), 60, whole=True)


@pytest.mark.parametrize("layout", ["yuv420p10le", "yuv422p10le"])
@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_ten_bits(worker: Worker, folder: Path, layout: str, ending: str) -> None:
    check(worker, videos.encode(folder / f"{layout}.{ending}", 60, layout=layout), 60)


def test_ten_bits_of_hevc(worker: Worker, folder: Path) -> None:
    parameters = "keyint=30:bframes=4:log-level=none:pools=1"
    path = videos.encode(folder / "hevc-10.mp4", 60, codec="libx265", parameters=parameters, layout="yuv420p10le")
    check(worker, path, 60)


def test_files_that_tell_too_little_are_decoded_as_a_whole(worker: Worker, folder: Path) -> None:
    options = {"codec": "mpeg4", "parameters": "", "bf": "2", "g": "30"}
    check(worker, videos.encode(folder / "mpeg4.avi", 60, **options), 60, whole=True)
    refresh = videos.encode(folder / "refresh.mp4", 100, parameters="intra-refresh=1:keyint=40:bframes=0")
    check(worker, refresh, 100, whole=True)
    assert "frame 44" in worker.decode(refresh, [44])["sequential"]


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def bytes_read(worker: Worker) -> int:
    lines = Path(f"/proc/{worker.process.pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


@pytest.mark.parametrize("ending", ["mkv", "ts", "avi"])
def test_what_packets_tell_is_kept(worker: Worker, folder: Path, tmp_path: Path, ending: str) -> None:
    codec = {"codec": "mpeg4", "parameters": "", "bf": "2"} if ending == "avi" else {"parameters": OPEN}
    path, cache = videos.encode(tmp_path / f"video.{ending}", 90, **codec), tmp_path / "cache"
    plain = [worker.decode(path, frames) for frames in ([80, 7], [33])]

    def agree() -> None:
        for frames, expected in zip(([80, 7], [33]), plain):
            answer = worker.decode(path, frames, cache=str(cache))
            assert np.array_equal(answer.pop("images"), expected["images"])
            assert answer == {key: value for key, value in expected.items() if key != "images"}

    agree()
    (entry,) = entries(cache)
    kept, numbered = entry.read_bytes(), entry.stat().st_ino
    agree()
    assert entry.stat().st_ino == numbered
    # Whatever becomes of an entry, it is told from a good one and made anew.
    for damaged in (b"", kept[:-3], kept.replace(b"1", b"2"), b"\xff" * 99, kept + b"\n"):
        entry.write_bytes(damaged)
        agree()
        assert entry.read_bytes() == kept
    # Another file in its place is another video.
    videos.encode(path, 40, **codec)
    assert worker.decode(path, [0], cache=str(cache))["pictures"]["total"] == 40
    assert len(entries(cache)) == 2


def test_a_container_with_a_table_needs_no_cache(worker: Worker, plain: Path, tmp_path: Path) -> None:
    worker.decode(plain, [3], cache=str(tmp_path / "cache"))
    assert not entries(tmp_path / "cache")


def test_only_what_is_wanted_is_read_the_next_time(tmp_path: Path) -> None:
    path = videos.copy(videos.pattern(tmp_path / "pattern.mp4", 8, "1280x720"), tmp_path / "pattern.mkv")
    worker, read, images = Worker(), [0], []
    for _ in range(2):
        images.append(worker.decode(path, [0, 239], size=64, cache=str(tmp_path / "cache"))["images"])
        read.append(bytes_read(worker))
    worker.close()
    assert np.array_equal(*images)
    assert 2 * (read[2] - read[1]) < read[1] - read[0], read


@pytest.mark.parametrize("ending", ["mp4", "mkv", "ts"])
def test_a_file_that_ends_too_early(worker: Worker, plain: Path, ending: str) -> None:
    path = videos.copy(plain, plain.with_name(f"whole.{ending}"), options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    expected = videos.full_decode(path)
    answer = worker.decode(path, [0])
    total = answer["pictures"]["total"]
    # PyAV gives up at the damage; the decoder still holds some frames then.
    assert len(expected) <= total <= len(expected) + 4
    everything = worker.decode(path, list(range(total)), sequential=True)
    assert everything["pictures"]["total"] == total
    last = worker.decode(path, [total - 1])["images"][0]
    assert np.array_equal(last, everything["images"][-1])
    assert [videos.number_of(image) for image in everything["images"]][: len(expected)] == expected


def test_files_without_frames_say_so(worker: Worker, folder: Path) -> None:
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "junk.mp4").write_bytes(bytes(range(256)) * 100)
    videos.sound(folder / "sound.mp4")
    assert worker.decode(folder / "sound.mp4", [0])["failed"] == "no video in this file"
    for name in ("empty.mp4", "junk.mp4", "missing.mp4"):
        assert worker.decode(folder / name, [0])["failed"].startswith("cannot open"), name
    assert "frame 999 was asked for; the video has 120" in worker.decode(folder / "plain.mp4", [999])["failed"]


def test_shapes(worker: Worker, plain: Path) -> None:
    cropped = worker.decode(plain, [5], size=90, fit="crop")["images"][0]
    padded = worker.decode(plain, [5], size=90, fit="pad")["images"][0]
    assert padded[:19].max() == 0 and padded[-19:].max() == 0 and padded[22:68].min(axis=(1, 2)).size == 46
    assert videos.number_of(padded[20:70]) == 5 and cropped.shape == padded.shape


def caulk(*words: str | Path, cwd: Path, code: int = 0) -> str:
    line = [str(word) for word in (CAULK, "clips", *words)]
    done = subprocess.run(line, cwd=cwd, env=program_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def data_set(folder: Path, plain: Path) -> Path:
    """Twelve videos and one that is none, with a manifest."""
    place = folder / "set"
    (place / "videos").mkdir(parents=True)
    rows = ["video_path,label,person"]
    for number in range(12):
        name = f"videos/{number}.mp4"
        videos.encode(place / name, 30 + number, size=(160, 96))
        rows.append(f"{name},{'real' if number % 2 else 'fake'},{number // 2}")
    (place / "videos/bad.mp4").write_bytes(b"nothing")
    rows.append("videos/bad.mp4,real,9")
    (place / "videos.csv").write_text("\n".join(rows) + "\n")
    return place


OPTIONS = ("--frames", "4", "--size", "48", "--augment", "2")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a prepared set; which locks there were says nothing."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


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
    line = [CAULK, "clips", "prepare", "videos.csv", "--out", "stopped", *OPTIONS, "--jobs", "2"]
    draw = random.Random(7)
    for _ in range(5):
        run = subprocess.Popen(line, cwd=data_set, env=program_environment(), stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.02, 0.4))
        run.send_signal(signal.SIGKILL)
        run.wait()
    caulk(*line[2:], cwd=data_set, code=1)
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
    line = [CAULK, "clips", "prepare", "videos.csv", "--out", out, *OPTIONS, "--jobs", "1", "--shard"]
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
    line = [CAULK, "clips", "prepare", "waiting.csv", "--out", "divided", *OPTIONS, "--shard"]
    run = subprocess.Popen([*line, "0/2"], cwd=data_set, env=program_environment(), stderr=subprocess.DEVNULL)
    try:
        while not (data_set / "divided/metadata.csv").exists():
            time.sleep(0.01)
        assert "another `caulk clips prepare` is writing" in caulk(*line[2:-1], cwd=data_set, code=125)
        assert "in 2 shards, not in 3" in caulk(*line[2:], "1/3", cwd=data_set, code=125)
        assert "another `caulk clips prepare` is writing" in caulk(*line[2:], "0/2", cwd=data_set, code=125)
        caulk(*line[2:], "1/2", cwd=data_set)
    finally:
        run.kill()
        run.wait()
    caulk(*line[2:], "1/3", cwd=data_set)


def test_failures_are_listed_as_they_come(tmp_path: Path) -> None:
    names = ["bad-1.mp4", "endless-1.mp4", "bad-2.mp4", "endless-2.mp4"]
    for name in names:
        # Opened, a pipe waits for somebody who writes to it.
        make = Path.touch if name.startswith("bad") else os.mkfifo
        make(tmp_path / name)
    (tmp_path / "videos.csv").write_text("\n".join(["video_path", *names]) + "\n")
    line = [CAULK, "clips", "prepare", "videos.csv", "--out", "out", "--jobs", "1", "--timeout", "2s"]
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
    prepared: Path, data_set: Path, changed: dict[str, Any], told: str
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


def test_frames_are_snapped_to_cheaper_ones(plain: Path, tmp_path: Path) -> None:
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


def peak_bytes(worker: Worker) -> int:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def test_memory_does_not_depend_on_length_and_is_a_fiftieth_of_all_frames(tmp_path: Path) -> None:
    peaks = []
    for seconds in (2, 12):
        path, worker = videos.pattern(tmp_path / f"{seconds}.mp4", seconds, "1920x1080"), Worker()
        frames = [round(i * (seconds * 30 - 1) / 5) for i in range(6)]
        assert worker.decode(path, frames, size=112)["images"].shape[0] == 6
        peaks.append(peak_bytes(worker))
        worker.close()
    assert abs(peaks[1] - peaks[0]) < 4_000_000, peaks
    assert 50 * peaks[1] < 12 * 30 * 1920 * 1080 * 3, peaks


def test_a_video_that_would_take_too_much_is_refused(plain: Path) -> None:
    process = subprocess.run(
        [WORKER, "65"],
        input=json.dumps({"decode": {"path": str(plain), "selection": "uniform", "frames": 2, "size": None}}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "more than the 1 MB for one video" in json.loads(process.stdout)["failed"]


#: Another value means other clips for everybody: then the pipeline's version has to change, too.
GOLDEN = "a0956ea7011fcfa4"


@pytest.mark.parametrize("portable", [{}, {"CAULK_CLIP_PORTABLE": "1"}], ids=["vectors", "none"])
def test_clips_are_the_same_on_every_machine_for_ever(tmp_path: Path, portable: dict[str, str]) -> None:
    (tmp_path / "videos.csv").write_text("video_path\ntiny.mp4\n")
    (tmp_path / "tiny.mp4").write_bytes((Path(__file__).parent / "data/tiny.mp4").read_bytes())
    words = ["prepare", "videos.csv", "--out", "out", "--frames", "4", "--size", "40x28", "--augment", "3"]
    words += ["--operations", "flip,crop,rotation,color,blur,noise,temporal-jitter,frame-drop"]
    environment = program_environment(**portable)
    subprocess.run([CAULK, "clips", *words], cwd=tmp_path, env=environment, check=True, capture_output=True)
    clips = json.loads((tmp_path / "out/clips.jsonl").read_text().splitlines()[1])["clips"]
    assert hashlib.sha256("".join(clip["sha256"] for clip in clips).encode()).hexdigest()[:16] == GOLDEN


@pytest.mark.parametrize("flips", [0, 1])
def test_damaged_files_neither_crash_nor_grow(plain: Path, tmp_path: Path, flips: int) -> None:
    worker, draw = Worker(), random.Random(flips)
    whole = bytearray(plain.read_bytes())
    for number in range(40):
        data = bytearray(whole[: draw.randrange(len(whole))] if not flips else whole)
        for _ in range(20 * flips):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path = tmp_path / f"{number}.mp4"
        path.write_bytes(data)
        answer = worker.decode(path, [0, 1], size=112)
        assert "pictures" in answer or "failed" in answer
    assert peak_bytes(worker) < 100_000_000
    assert worker.close() == 0
