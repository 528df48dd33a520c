"""Interpreters whose frames are not where they should be: the program runs, is judged, and one line says what is missing."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: Debian's gcc"),
    pytest.mark.skipif(
        not sysconfig.get_config_var("Py_ENABLE_SHARED"), reason="an interpreter in one piece cannot be told otherwise"
    ),
]

#: Stand before the interpreter's own: what the sampler finds in its place.
UNKNOWN = 'const char *Py_GetVersion(void) { return "3.99.0 (main) [none]"; }'
#: A thread's state without frames.
ELSEWHERE = "static void *state[8192]; void *PyGILState_GetThisThreadState(void) { return state; }"

EPOCHS, BYTES = 8, 8_000_000
PROGRAM = f"""
import caulk

kept = []
for epoch in range({EPOCHS}):
    kept.append(bytearray({BYTES}))
    print(epoch)
    caulk.epoch()
"""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        pytest.param(UNKNOWN, "the frames of this version of Python are not known", id="unknown version"),
        pytest.param(
            ELSEWHERE, "the frames of this build of Python are not where its version has them", id="failed check"
        ),
    ],
)
def test_a_python_that_cannot_be_read_runs_and_is_told(run_caulk, tmp_path: Path, source, told):
    path, library = tmp_path / "stand_in.c", tmp_path / "stand_in.so"
    path.write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, path], check=True)
    run = run_caulk(PROGRAM, env={"LD_PRELOAD": str(library)})
    assert (run.code, run.stdout.split()) == (0, [str(epoch) for epoch in range(EPOCHS)]), run.told()
    notes = [note for note in run.report["notes"] if told in note]
    assert len(notes) == 1, run.told()
    verdict = run.verdict()
    assert verdict and verdict["state"] == "grows", run.told()
    assert 0.9 * BYTES < verdict["bytes_per_unit"] < 1.2 * BYTES, run.told()
