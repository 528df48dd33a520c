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
