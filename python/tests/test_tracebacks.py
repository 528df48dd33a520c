"""Errors show the program's own traceback, without a frame of caulk's."""

from __future__ import annotations

import subprocess
import sys

import pytest
from harness import PROGRAMS, Run


@pytest.mark.parametrize("way", ["backward", "gradient", "batch", "batch of a worker", "work"])
def test_a_traceback_is_the_same_as_without_caulk(run_caulk, tmp_path, way):
    words = [str(PROGRAMS / "raises.py"), way]
    alone = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    run: Run = run_caulk(*words)
    assert run.code == alone.returncode == 1
    assert "Traceback" in alone.stderr and alone.stderr in run.stderr, run.told()
