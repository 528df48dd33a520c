"""`caulk heal` on real programs: what it proves, what it refuses, and what it leaves alone."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import CAULK, program_environment
from test_notebook_cells import KERNEL

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

# Every bound and every `clear` shows in what it prints.
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

# The first entry of each epoch is not there if older ones were dropped.
READ_BY_PLACE = READ_IN_FULL.replace("    meter.print()", "    print(f'{float(meter.values[20 * epoch].mean()):.4f}')")

# The edited program does not end by itself.
WAITS_IF_EDITED = (
    LEAKY
    + """
if "detach" in open("train.py").read().split("append")[1][:60]:
    open("waits", "w").close()
    __import__("time").sleep(120)
"""
)

# A large file that is changed in place, which in a copy of links is the user's own.
WRITES_THROUGH = """
with open("table.bin", "r+b") as table:
    table.write(b"1")
"""

# The same by its absolute path. What it has written it reads.
WRITES_BY_NAME = """
import os
for turn in range(2):
    with open("PATH", "r+b") as table:
        print(table.read(1))
        table.seek(0)
        table.write(b"1")
print(open("data.txt").read(), os.path.basename(os.getcwd()))
"""

UNSEEDED = LEAKY.replace("peaks[-1].item()", "__import__('random').random()")

FAILING = LEAKY + "raise ValueError('no such table')\n"


def project(folder: Path, program: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "common.py").write_text(COMMON)
    (folder / "train.py").write_text(program)
    return folder


def words(*options: str, program: tuple[str, ...] = ("train.py",)) -> list[str]:
    return [str(CAULK), "heal", "--format", "json", *options, "--", sys.executable, *program]


def heal(folder: Path, *options: str, **more) -> tuple[int, dict, str]:
    """Exit code, the document, standard error."""
    program = more.pop("program", ("train.py",))
    done = subprocess.run(
        words(*options, program=program),
        cwd=folder,
        # Files of an overlay lie in the first; without the second, an import leaves a trace.
        env=program_environment(XDG_STATE_HOME=str(folder.parent / f"{folder.name}-state"), PYTHONDONTWRITEBYTECODE=""),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **more,
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


def test_a_cell_of_a_notebook_is_healed(tmp_path):
    cells = ["%matplotlib inline\nfrom common import EPOCHS, train\npeaks = []", LEAKY.split("peaks = []")[1].strip()]
    kernel = KERNEL.replace('"".join(cell["source"])', '"".join(cell["source"]).replace("%matplotlib", "#matplotlib")')
    folder = project(tmp_path, kernel)
    notebook = {"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}
    (folder / "fit.ipynb").write_text(json.dumps(notebook | {"nbformat": 4}))
    code, document, errors = heal(folder, "--apply", program=("train.py", "fit.ipynb"))
    assert (code, document["outcome"]) == (0, "healed"), errors + json.dumps(document)
    (edit,) = document["edits"]
    assert (edit["verdict"], edit["file"], edit["line"]) == ("proven", "fit.ipynb:cell 2", 2)
    healed = json.loads((folder / "fit.ipynb").read_text())
    assert healed["cells"][0] == notebook["cells"][0] and ".detach()" in "".join(healed["cells"][1]["source"])


@pytest.mark.parametrize(
    ("program", "reason"),
    [(READ_IN_FULL, "output changed in line"), (READ_BY_PLACE, "the program failed with it: IndexError")],
)
def test_edits_that_change_the_output_or_crash_are_refused(tmp_path, program, reason):
    code, document, errors = heal(project(tmp_path, program))
    assert (code, document["outcome"]) == (1, "growth-left"), errors + json.dumps(document)
    assert document["edits"] and {edit["verdict"] for edit in document["edits"]} == {"refused"}
    reasons = " ".join(edit["reason"] for edit in document["edits"])
    assert reason in reasons
    assert not document["patch"] and (tmp_path / "train.py").read_text() == program


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


def handles_no(number: int, thread: Path) -> bool:
    status = dict(line.split(":", 1) for line in (thread / "status").read_text().splitlines())
    return bool(int(status["SigBlk"], 16) >> (number - 1) & 1)


def test_a_signal_ends_all_and_takes_edits_back(tmp_path):
    folder = project(tmp_path, WAITS_IF_EDITED)
    before = (folder / "train.py").read_text()
    with subprocess.Popen(
        words("--in-place"),
        cwd=folder,
        env=program_environment(),
        stdout=subprocess.PIPE,
        # In the background of some shells it would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as caulk:
        deadline = time.monotonic() + 240
        while not (folder / "waits").exists() and caulk.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert (folder / "train.py").read_text() != before
        # The kernel gives a signal to any thread that takes it, and only one passes it on.
        assert all(handles_no(signal.SIGINT, thread) for thread in Path(f"/proc/{caulk.pid}/task").iterdir())
        caulk.send_signal(signal.SIGINT)
        document = json.loads(caulk.communicate(timeout=60)[0])
    assert (caulk.returncode, document["outcome"]) == (130, "interrupted")
    assert (folder / "train.py").read_text() == before and not document["patch"]
    assert json.loads((folder / document["folder"] / "heal.json").read_text()) == document

    # The recording of its first run is of sources that are there no more.
    (folder / "train.py").write_text(before + "# changed\n")
    code, _, errors = heal(folder, "--from", f"{document['folder']}/run-1")
    assert code == 125 and "was changed after the run began" in errors, errors


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))


@pytest.mark.parametrize(
    ("program", "options", "reason"),
    [
        (("-c", "print(1)"), {}, "imported nothing of the project"),
        (("train.py",), {"preexec_fn": small_files}, "no room"),
        (("writes.py",), {}, "table.bin` in place"),
    ],
    ids=["nothing imported", "disk full", "written through a link"],
)
def test_it_refuses_with_the_reason(tmp_path, program, options, reason):
    # No mount can have a comma in a path: the copy has links.
    folder = project(tmp_path / "a,b", "print(1)\n")
    (folder / "writes.py").write_text(WRITES_THROUGH)
    (folder / "table.bin").write_bytes(b"0" * (2 << 20))
    code, document, errors = heal(folder, program=program, **options)
    assert (code, document) == (125, {}) and reason in errors, errors
    assert "hint: " in errors


def test_a_run_changes_nothing_of_the_project_in_an_overlay(tmp_path):
    folder = project(tmp_path / "project", "print(1)\n")
    (folder / "train.py").write_text(WRITES_BY_NAME.replace("PATH", str(folder / "table.bin")))
    (folder / "table.bin").write_bytes(b"0" * (2 << 20))
    (folder / "data.txt").write_text("data")
    code, document, errors = heal(folder, program=(str(folder / "train.py"),))
    out = folder / document["folder"] / "out"
    if not out.is_symlink():
        pytest.skip("this machine mounts no overlay for users")
    # Nothing grows, and the run is too short to be sure.
    assert code in (0, 3), errors
    printed = (folder / document["folder"] / "run-1.out").read_text()
    assert printed == "b'0'\nb'1'\ndata out\n", errors
    assert (folder / "table.bin").read_bytes()[:1] == b"0" and (out / "table.bin").read_bytes()[:1] == b"1"
