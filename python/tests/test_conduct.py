"""A program does not notice that caulk is there: it prints the same bytes and ends the same."""

from __future__ import annotations

import subprocess
import sys

import pytest
from harness import PROGRAMS, Run, program_environment


@pytest.mark.parametrize("part", ["function_transforms", "graphs", "training", "itself", "processes"])
def test_features_of_torch_work_as_without(run_caulk, tmp_path, part):
    words = [str(PROGRAMS / "torch_features.py"), part]
    alone = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=program_environment(), capture_output=True, text=True, check=False
    )
    assert alone.returncode == 23, alone.stderr
    run: Run = run_caulk(*words, cwd=tmp_path)
    assert (run.code, run.stdout) == (alone.returncode, alone.stdout), run.told()
    assert alone.stderr in run.stderr, run.told()


#: Allocates for a while, with its own profile function set, and says whose functions that saw.
WATCHED = """
import gc
import sys
import time

gc.disable()
files, until = set(), time.monotonic() + 3
sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename))
while time.monotonic() < until:
    bytearray(1 << 20)
    [str(number) for number in range(300)]
sys.setprofile(None)
print(sorted(file for file in files if file != __file__))
"""


def test_a_profiler_of_the_programs_does_not_see_the_clock(run_caulk, tmp_path):
    program = tmp_path / "watched.py"
    program.write_text(WATCHED)
    run: Run = run_caulk(program)
    assert (run.code, run.stdout) == (0, "[]\n"), run.told()
