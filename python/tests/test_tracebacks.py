"""Errors show the program's own traceback, without a frame of caulk's."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys

import pytest
from caulk import _agent
from harness import PROGRAMS, Run, marked_line


@pytest.mark.parametrize("way", ["backward", "gradient", "batch", "batch of a worker", "work"])
def test_a_traceback_is_the_same_as_without_caulk(run_caulk, tmp_path, way):
    words = [str(PROGRAMS / "raises.py"), way]
    alone = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    run: Run = run_caulk(*words)
    assert run.code == alone.returncode == 1
    assert "Traceback" in alone.stderr and alone.stderr in run.stderr, run.told()


def test_what_a_handler_of_a_signal_raises_amid_a_hook_is_the_programs(run_caulk):
    program = PROGRAMS / "time_limit.py"
    run: Run = run_caulk(program)
    ended = [line for line in run.stdout.splitlines() if line.startswith("epoch") and "0 ended" not in line]
    assert run.code == 0 and ended == [f"epoch {epoch}: 1 ended" for epoch in (3, 4, 5)], run.told()
    if sys.version_info >= (3, 11):  # The one before takes the traceback from where the error was caught.
        assert not [line for line in run.stdout.splitlines() if "/caulk/_" in line], run.told()
    # Nothing has failed: all is seen to the end, and looked into.
    assert "14 epochs" in run.stderr and not any("failed" in note for note in run.report["notes"]), run.told()
    assert run.alarm_at(program.name, marked_line(program)) is not None, run.told()


@pytest.mark.parametrize("way", ["alarm during a collection", "Ctrl-C during a collection", "alarm", "Ctrl-C"])
def test_what_a_handler_raises_where_time_is_kept_is_the_programs(run_caulk, way):
    run: Run = run_caulk(PROGRAMS / "interrupted.py", way)
    expected = "KeyboardInterrupt" if way.startswith("Ctrl-C") else "OutOfTime"
    assert (run.code, run.stdout) == (0, f"{expected}\n"), run.told()
    assert "ignored" not in run.stderr and not any("failed" in note for note in run.report["notes"]), run.told()


class Late(Exception):
    pass


def late(_number, _frame):
    raise Late


def late_with_any(*_arguments):
    raise Late


def late_without_its_frame(number, frame):
    del number, frame
    raise Late


class Handler:
    def __call__(self, _number, _frame, *, _why=""):
        raise Late

    def late(self, _number, _frame):
        raise Late


@pytest.mark.parametrize(
    "handler",
    [late, late_with_any, late_without_its_frame, Handler(), Handler().late, functools.partial(Handler.late, None)],
    ids=["function", "any arguments", "dropped argument", "object", "method", "partial"],
)
def test_handlers_are_told_by_the_frame_that_they_are_given(handler):
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Late) as interrupted:
            signal.raise_signal(signal.SIGALRM)
        assert _agent.raised_by_handler(interrupted.value)
        assert interrupted.value.__traceback__.tb_next is None, "it begins at the handler"
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(Late) as called:
        handler(signal.SIGALRM, None)
    assert not _agent.raised_by_handler(called.value)
    assert not _agent.raised_by_handler(ValueError("without a traceback"))
