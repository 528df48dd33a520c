"""`caulk heal` on real programs: what it proves, what it refuses, and what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import CAULK, program_environment

pytest.importorskip("torch")

# Trains for a moment per epoch; the programs below keep something at each step.
COMMON = """
import torch

EPOCHS = 8


def train(epoch, after_step):
    torch.manual_seed(epoch)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in torch.randn(20, 256, 64):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        after_step(model, batch)
"""

LEAKY = """
from common import EPOCHS, train

peaks = []
for epoch in range(EPOCHS):
    train(epoch, lambda model, batch: peaks.append(model(batch).tanh().max()))
    print(f"epoch {epoch}: {peaks[-1].item():.4f}")
open("peaks.txt", "w").write(str(len(peaks)))
"""

CLEAN = """
from collections import deque
from common import EPOCHS, train

latest = deque(maxlen=20)
for epoch in range(EPOCHS):
    train(epoch, lambda model, batch: latest.append(batch.mean()))
    print(f"epoch {epoch}: {latest[-1].item():.4f}")
"""

# Every bound and every `clear` shows in what it prints, and its tensors are no numbers.
READ_IN_FULL = """
from common import EPOCHS, train


class Meter:
    def __init__(self, window=20):
        self.window = window
        self.values = []

    def add(self, value):
        self.values.append(value)

    def print(self):
        recent = self.values[-self.window :]
        print(*(f"{sum(float(value.mean()) for value in values):.4f}" for values in (recent, self.values)))


meter = Meter()
for epoch in range(EPOCHS):
    train(epoch, lambda model, batch: meter.add(batch.repeat(8, 1)))
    meter.print()
"""

UNSEEDED = LEAKY.replace("peaks[-1].item()", "__import__('random').random()")

FAILING = LEAKY + "raise ValueError('no such table')\n"


def project(folder: Path, program: str) -> Path:
    (folder / "pyproject.toml").write_text("")
    (folder / "common.py").write_text(COMMON)
    (folder / "train.py").write_text(program)
    return folder


def heal(folder: Path, *options: str) -> tuple[int, dict, str]:
    """Exit code, the document, standard error."""
    done = subprocess.run(
        [str(CAULK), "heal", "--format", "json", *options, "--", sys.executable, "train.py"],
        cwd=folder,
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def test_a_leak_is_healed_in_a_copy_and_applied_on_request(tmp_path):
    folder = project(tmp_path, LEAKY)
    code, document, errors = heal(folder, "--html", "heal.html")
    assert (code, document["outcome"]) == (0, "healed"), errors + json.dumps(document)
    page = (folder / "heal.html").read_text()
    assert page.count("curve leading") == 4 and "peaks.append(model(batch).tanh().max().detach())" in page
    assert "proven" in page and "default-src 'none'" in page and page.count("<script") == 1
    (edit,) = document["edits"]
    assert (edit["verdict"], edit["file"], edit["line"]) == ("proven", "train.py", 6)
    before, after = document["runs"]
    assert (before["state"], after["state"]) == ("grows", "steady")
    assert document["compared"]["lines"] == 8
    # Neither the edit nor what the program writes has reached the project.
    assert (folder / "train.py").read_text() == LEAKY and not (folder / "peaks.txt").exists()

    patch = folder / document["folder"] / "heal.patch"
    assert patch.read_text() == document["patch"]

    # All runs are known: the edits are only applied now, and the patch undoes them.
    code, document, errors = heal(folder, "--resume", "--apply")
    assert (code, document["applied"], len(document["runs"])) == (0, True, 2), errors
    assert ".detach()" in (folder / "train.py").read_text()
    subprocess.run(["patch", "-R", "-p1", "--input", str(patch)], cwd=folder, check=True, capture_output=True)
    assert (folder / "train.py").read_text() == LEAKY


def test_edits_that_change_the_output_crash_or_do_nothing_are_refused(tmp_path):
    code, document, errors = heal(project(tmp_path, READ_IN_FULL))
    assert (code, document["outcome"]) == (1, "growth-left"), errors + json.dumps(document)
    assert document["edits"] and {edit["verdict"] for edit in document["edits"]} == {"refused"}
    reasons = " ".join(edit["reason"] for edit in document["edits"])
    assert "output changed in line" in reasons and "the program failed with it: ValueError" in reasons
    assert not document["patch"] and (tmp_path / "train.py").read_text() == READ_IN_FULL


def test_a_clean_program_is_left_alone(tmp_path):
    code, document, errors = heal(project(tmp_path, CLEAN))
    assert (code, document["outcome"], len(document["runs"])) == (0, "nothing-to-heal", 1), errors
    assert not document["edits"] and not document["patch"]


def test_nothing_is_proven_without_a_seed(tmp_path):
    code, document, errors = heal(project(tmp_path, UNSEEDED))
    assert (code, document["outcome"]) == (4, "not-comparable"), errors + json.dumps(document)
    assert "set a seed" in document["reason"] and not document["patch"]


def test_a_program_that_fails_is_not_healed(tmp_path):
    code, document, errors = heal(project(tmp_path, FAILING))
    assert (code, document["outcome"]) == (4, "command-failed"), errors
    assert "no such table" in document["reason"]
