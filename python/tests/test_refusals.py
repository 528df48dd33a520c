"""Interpreters whose parts are not where they should be: the program runs, is judged, and one line says what is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

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


def runs_with_a_note(run, code: str, about: str) -> None:
    """The program is as it was, judged by its memory alone, and one note says what is not measured."""
    assert (run.code, run.stdout.split()) == (0, [str(epoch) for epoch in range(EPOCHS)]), run.told()
    (note,) = run.notes_about(code)
    assert about in note, run.told()
    verdict = run.verdict()
    assert verdict and verdict["state"] == "grows", run.told()
    assert 0.9 * BYTES < verdict["bytes_per_unit"] < 1.2 * BYTES, run.told()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: Debian's gcc")
@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_ENABLE_SHARED"), reason="an interpreter in one piece cannot be told otherwise"
)
@pytest.mark.parametrize(
    ("source", "about"),
    [
        pytest.param(UNKNOWN, "version of Python", id="unknown version"),
        pytest.param(ELSEWHERE, "build of Python", id="failed check"),
    ],
)
def test_a_python_that_cannot_be_read_runs_and_is_told(run_caulk, tmp_path: Path, source, about):
    path, library = tmp_path / "stand_in.c", tmp_path / "stand_in.so"
    path.write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, path], check=True)
    runs_with_a_note(run_caulk(PROGRAM, env={"LD_PRELOAD": str(library)}), "heap-without-stacks", about)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the interpreter has a function for it from 3.12 on")
@pytest.mark.parametrize(("objects", "is_told"), [("n + n // 50 + 17", True), ("n + n // 200", False)])
def test_a_collector_whose_lists_are_not_as_many_as_it_says_is_not_looked_through(
    run_caulk, tmp_path, objects, is_told
):
    # Before caulk is loaded, the collector's word is changed.
    packages = tmp_path / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    packages.mkdir(parents=True)
    otherwise = f"def told(real):\n    n = len(real())\n    return [0] * ({objects})\n"
    otherwise += "import functools, gc\ngc.get_objects = functools.partial(told, gc.get_objects)\n"
    (packages / "told_otherwise.py").write_text(otherwise)
    (packages / "told_otherwise.pth").write_text("import told_otherwise\n")
    python = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    run = run_caulk(PROGRAM, python=python, env={"PYTHONUSERBASE": str(tmp_path)})
    if is_told:
        runs_with_a_note(run, "census-unavailable", "objects")
    else:
        assert run.code == 0 and run.notes_about("census-unavailable") == [], run.told()
