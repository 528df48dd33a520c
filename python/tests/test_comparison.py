"""`caulk report --from --to`: what has changed between two moments of a real training."""

from __future__ import annotations

import json
import subprocess

import pytest
from harness import CAULK, ROOT, Run

DETECTOR = ROOT / "examples" / "train_detector.py"
FROM, TO = 3, 7
#: Batches of a validation, each of which leaves one value and its graph.
KEPT = 4
#: The line whose activations the graphs keep.
(LINE,) = [number for number, line in enumerate(DETECTOR.read_text().splitlines(), 1) if "self.stages(images)" in line]


def test_types_containers_and_lines_of_two_epochs_are_compared(run_caulk):
    run: Run = run_caulk(DETECTOR, "--epochs", "8", "--steps", "8")
    assert run.code == 0, run.told()

    def report(*options: str) -> str:
        command = [CAULK, "report", run.folder / "run", "--from", str(FROM), "--to", str(TO), *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    (main,) = json.loads(report("--format", "json"))["comparisons"]
    assert [moment["number"] for moment in main["moments"]] == [FROM, TO], main
    grown = main["in_use"][1] - main["in_use"][0]

    (container,) = [each for each in main["containers"] if each["holder"].endswith("val_ious")]
    # An epoch is counted when its training ends: what its validation leaves belongs to the next one.
    assert container["length"] == [KEPT * (FROM - 1), KEPT * (TO - 1)], main
    assert container["bytes"] == pytest.approx(grown, rel=0.25), main

    types = {each["name"]: each for each in main["types"]}
    before, after = types["torch.Tensor"]["objects"]
    assert after - before >= KEPT * (TO - FROM), main

    line = main["lines"][0]
    assert (line["file"], line["line"]) == (str(DETECTOR), LINE), main
    assert line["change"]["bytes"] > 0.5 * grown, main

    text = report()
    assert f"from epoch {FROM} to epoch {TO}" in text, text
    assert all(told in text for told in ("val_ious", "torch.Tensor", f"train_detector.py:{LINE}")), text
