"""What `caulk-clip` decodes, of videos of every awkward kind: exactly the frames of a full decode."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
import videos
from clipwork import NEEDED, WORKER, Worker, check, peak_bytes

pytestmark = NEEDED
X264 = videos.X264
OPEN = "bframes=3:keyint=30:scenecut=0:open-gop=1:b-pyramid=normal"


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
