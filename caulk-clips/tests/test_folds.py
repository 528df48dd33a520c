"""`caulk clips split`: what it refuses, what it leaves behind, and labels on both sides of a fold."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import videos
from clipwork import CLIPS
from harness import program_environment

pytest.importorskip("torch")

import caulk_clips

pytestmark = pytest.mark.usefixtures("clip_worker")

LABELS = ["10", "9", "9", "10", "2", "2"]


def clips(place: Path, *words: str, code: int = 0) -> str:
    line = [str(CLIPS), *words]
    done = subprocess.run(line, cwd=place, env=program_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folds")
    rows = ["video_path,label,person"]
    for number, label in enumerate(LABELS):
        videos.encode(place / f"{number}.mp4", 8, size=(64, 48))
        rows.append(f"{number}.mp4,{label},{number // 2}")
    (place / "videos.csv").write_text("\n".join(rows) + "\n")
    clips(place, "prepare", "videos.csv", "--out", "out", "--frames", "2", "--size", "16")
    return place


def split(place: Path, *words: str, manifest: str = "videos.csv", code: int = 0) -> str:
    return clips(place, "split", manifest, "--out", "out", *words, code=code)


def test_labels_have_one_number_on_both_sides(place: Path) -> None:
    # One person is one label here: what is validated is never trained on.
    (place / "labels.csv").write_text((place / "videos.csv").read_text())
    split(place, "--folds", "3", "--group", "label", manifest="labels.csv")
    for fold in range(3):
        sides = [caulk_clips.ClipDataset(place / "out", fold=fold, side=side) for side in ("train", "validation")]
        assert [side.labels for side in sides] == [["2", "9", "10"]] * 2
        numbers = [{label for _, label in side} for side in sides]
        assert numbers[0] | numbers[1] == {0, 1, 2} and not numbers[0] & numbers[1]


def test_fewer_folds_leave_none_of_more(place: Path) -> None:
    split(place, "--folds", "5")
    split(place, "--folds", "3")
    names = sorted(path.name for path in (place / "out/folds").iterdir())
    assert names == ["fold-0.json", "fold-1.json", "fold-2.json"]
    with pytest.raises(FileNotFoundError):
        caulk_clips.ClipDataset(place / "out", fold=4)


def test_one_video_under_several_names_is_on_one_side(place: Path) -> None:
    (place / "link.mp4").symlink_to("0.mp4")
    names = ["0.mp4", "./0.mp4", f"{place}/0.mp4", "link.mp4", "1.mp4", "2.mp4"]
    (place / "again.csv").write_text("\n".join(["video_path,label", *(f"{name},x" for name in names)]) + "\n")
    clips(place, "prepare", "again.csv", "--out", "again", "--frames", "2", "--size", "16")
    clips(place, "split", "again.csv", "--out", "again", "--folds", "3")
    for fold in range(3):
        document = json.loads((place / f"again/folds/fold-{fold}.json").read_text())
        train, validation = (
            {Path(file).name.split("-")[0].replace("link", "0") for file in document[side]}
            for side in ("train", "validation")
        )
        assert train and validation and not train & validation
    rows = ["video_path,person", "0.mp4,a", "./0.mp4,b", "1.mp4,c"]
    (place / "two.csv").write_text("\n".join(rows) + "\n")
    told = clips(place, "split", "two.csv", "--out", "again", "--folds", "2", "--group", "person", code=125)
    assert "`0.mp4` and `./0.mp4` are the same video, in two groups" in told
    os.remove(place / "link.mp4")


def test_what_cannot_be_divided_is_refused(place: Path) -> None:
    assert "6 groups cannot be divided into 50 folds" in split(place, "--folds", "50", code=125)
    assert "no column `age`" in split(place, "--stratify", "age", code=125)
    (place / "empty.csv").write_text("video_path,person\n0.mp4,a\n1.mp4,\n2.mp4,b\n")
    told = split(place, "--folds", "2", "--group", "person", manifest="empty.csv", code=125)
    assert "`1.mp4` has no group" in told
    (place / "others.csv").write_text("video_path\nx.mp4\ny.mp4\n")
    assert "no video of `others.csv` has clips" in split(place, "--folds", "2", manifest="others.csv", code=125)
