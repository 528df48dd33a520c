"""`caulk report --cuda-snapshot` and `caulk diff` of two snapshots, as torch writes them."""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path

import pytest
from cuda_snapshots import MB, growing_buffers, kept_features
from harness import CAULK


def caulk(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(CAULK), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def dump(path: Path, snapshot: object, protocol: int | None = None) -> Path:
    path.write_bytes(pickle.dumps(snapshot, protocol))
    return path


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_snapshot_names_lines_and_what_would_help(tmp_path, protocol):
    file = dump(tmp_path / "s.pickle", growing_buffers(30).snapshot(), protocol)
    ended = caulk("report", "--cuda-snapshot", file, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["cuda_snapshot"]
    line = found["devices"][0]["lines"][0]
    assert (line["file"], line["line"]) == ("/home/me/pack.py", 17) and line["bytes"] >= 60 * MB
    assert found["advice"][0]["remedies"][0]["setting"] == "expandable_segments:True"
    text = caulk("report", "--cuda-snapshot", file).stdout
    assert "/home/me/pack.py:17" in text and "expandable_segments:True" in text, text


def test_two_snapshots_show_what_grew(tmp_path):
    early, late = (dump(tmp_path / f"{n}.pickle", kept_features(n).snapshot()) for n in (3, 9))
    ended = caulk("diff", early, late, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    grown = json.loads(ended.stdout)["cuda_snapshots"]["lines"][0]
    assert grown["name"] == "/home/me/train.py:30 validate" and grown["change"] == 18 * MB
    refused = caulk("diff", early, late, "--format", "markdown")
    assert refused.returncode == 125 and "--format json" in refused.stderr


class Calls:
    """Runs a command if it is unpickled by Python."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> object:
        return Path.touch, (self.marker,)


def test_files_that_are_no_snapshots_are_refused_with_the_offset(tmp_path):
    marker = tmp_path / "ran"
    whole = pickle.dumps(kept_features(3).snapshot())
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text").write_text("not a pickle")
    dump(tmp_path / "calls", {"segments": [Calls(marker)]})
    dump(tmp_path / "other", {"weights": [1, 2]})
    reasons = {"cut": "ends in the middle", "text": "no pickle", "calls": "calls code", "other": "no list `segments`"}
    for name, reason in reasons.items():
        ended = caulk("report", "--cuda-snapshot", tmp_path / name)
        assert ended.returncode == 125 and reason in ended.stderr, ended.stderr
        assert name == "other" or "at byte" in ended.stderr, ended.stderr
    assert not marker.exists()
