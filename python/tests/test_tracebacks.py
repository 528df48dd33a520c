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


def test_what_a_handler_of_a_signal_raises_amid_a_hook_is_the_programs(run_caulk):
    run: Run = run_caulk(PROGRAMS / "time_limit.py")
    ended = [line for line in run.stdout.splitlines() if "1 ended" in line]
    assert run.code == 0 and ended == ["epoch 3: 1 ended", "epoch 4: 1 ended"], run.told()
    if sys.version_info >= (3, 11):  # The one before takes the traceback from where the error was caught.
        assert not [line for line in run.stdout.splitlines() if "/caulk/_" in line], run.told()
    # Nothing has failed: all is seen to the end.
    assert "8 epochs" in run.stderr and not any("failed" in note for note in run.report["notes"]), run.told()
