"""Errors show the program's own traceback, without a frame of caulk's."""

from __future__ import annotations

import functools
import gc
import signal
import subprocess
import sys
import traceback
import weakref

import pytest
from caulk import _agent
from harness import PROGRAMS, Run, marked_line


@pytest.mark.parametrize("way", ["backward", "gradient", "batch", "batch of a worker", "work", "import"])
def test_a_traceback_is_the_same_as_without_caulk(run_caulk, tmp_path, way):
    words = [str(PROGRAMS / "raises.py"), way]
    alone = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    run: Run = run_caulk(*words, cwd=tmp_path)
    assert run.code == alone.returncode == 1
    assert "Traceback" in alone.stderr and alone.stderr in run.stderr, run.told()


def test_what_a_handler_of_a_signal_raises_amid_a_hook_is_the_programs(run_caulk):
    program = PROGRAMS / "time_limit.py"
    run: Run = run_caulk(program)
    ended = [line for line in run.stdout.splitlines() if line.startswith("epoch") and "0 ended" not in line]
    assert run.code == 0 and ended == [f"epoch {epoch}: 1 ended" for epoch in (3, 4, 5, 6)], run.told()
    if sys.version_info >= (3, 11):  # The one before takes the traceback from where the error was caught.
        assert not [line for line in run.stdout.splitlines() if "/caulk/_" in line], run.told()
    # Nothing has failed: all is seen to the end, and looked into.
    assert "14 epochs" in run.stderr and not run.notes_about("hook-failed"), run.told()
    assert run.alarm_at(program.name, marked_line(program)) is not None, run.told()


def test_no_exception_of_a_handler_is_lost_whenever_it_comes(run_caulk):
    run: Run = run_caulk(PROGRAMS / "alarms.py")
    lines = run.stdout.split()
    assert run.code == 0 and lines[1:3] == ["0", "0"], run.told()
    assert lines[0] == "enough" or int(lines[0]) > 50, run.told()
    if sys.version_info >= (3, 11):  # As above.
        assert lines[3] == "[]", run.told()
    assert not run.notes_about("hook-failed"), run.told()


@pytest.mark.parametrize("signal", ["alarm", "Ctrl-C"])
@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("during a collection", ""),
        ("looking around", ""),
        ("importing", "hooked Around\n"),
        ("forked", "in the child\n{0}\nended 0\n"),
    ],
)
def test_what_a_handler_raises_where_time_is_kept_is_the_programs(run_caulk, signal, when, told):
    run: Run = run_caulk(PROGRAMS / "interrupted.py", f"{signal} {when}")
    expected = "KeyboardInterrupt" if signal == "Ctrl-C" else "OutOfTime"
    assert (run.code, run.stdout) == (0, told.format(expected) + f"{expected}\n"), run.told()
    assert "ignored" not in run.stderr and not run.notes_about("hook-failed"), run.told()


class Late(Exception):
    pass


def late(_number, _frame):
    raise Late


def late_with_any(*_arguments):
    raise Late


def late_without_its_frame(number, frame):
    del number, frame
    raise Late


def late_after_a_walk(_number, frame):
    while frame is not None:
        frame = frame.f_back
    raise Late


@functools.lru_cache
def late_and_cached(number, frame):
    del number, frame
    raise Late


class Handler:
    def __call__(self, _number, _frame, *, _why=""):
        raise Late

    def late(self, _number, _frame):
        raise Late


@pytest.mark.parametrize(
    "handler",
    [
        late,
        late_with_any,
        late_without_its_frame,
        late_after_a_walk,
        late_and_cached,
        Handler(),
        Handler().late,
        functools.partial(Handler.late, None),
    ],
    ids=["function", "any arguments", "dropped argument", "walk", "cache", "object", "method", "partial"],
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


def test_a_program_that_hands_its_frames_around_or_calls_its_handler_fails_by_itself():
    def look(_frame):
        raise Late

    def save(*_arguments):
        raise Late

    before = signal.signal(signal.SIGALRM, save)
    try:
        for fails in (lambda: look(sys._getframe()), save):
            with pytest.raises(Late) as failed:
                caulks("def call(*_): run()", run=fails)["call"]()
            assert not _agent.raised_by_handler(failed.value, programs=True)
    finally:
        signal.signal(signal.SIGALRM, before)


def caulks(text, **names):
    """What code in a file of caulk's makes of these names."""
    exec(compile(text, "<caulk hooks>", "exec"), names)
    return names


def raising(error):
    def hook(*_arguments):
        if error is not None:
            raise error

    return hook


@pytest.mark.parametrize("at", ["begin", "end", "failed"])
def test_ctrl_c_amid_a_hook_shows_no_frame_of_it(at):
    text = "def broken(*_): 1 / 0\ndef interrupted(*_): signal.raise_signal(signal.SIGINT)\ndef quiet(*_): return 1"
    scope = caulks(text, signal=signal)
    broken, interrupted, quiet = scope["broken"], scope["interrupted"], scope["quiet"]
    hooks = {
        "begin": (interrupted, quiet, quiet),
        "end": (quiet, interrupted, quiet),
        "failed": (broken, quiet, interrupted),
    }
    around = _agent.Around(lambda: "result", *hooks[at], False)
    # In the background of a shell Ctrl-C is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            around()
    finally:
        signal.signal(signal.SIGINT, before)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[0].startswith("test_ctrl_c") and "interrupted" not in names, names


def contexts(error):
    """An exception and those before it."""
    found = []
    while error is not None and len(found) < 9:
        found.append(type(error).__name__)
        error = error.__context__
    return found


def late_after_another(_number, _frame):
    try:
        raise OSError
    except OSError:
        raise Late from None


def raised_in_the_end(handler, failure):
    """What comes of a failure and of a signal amid the end of a hook, while a `KeyError` is handled."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        around = _agent.Around(
            raising(failure), lambda *_: 1, lambda *_: signal.raise_signal(signal.SIGALRM), raising(None), False
        )
        try:
            raise KeyError
        except KeyError:
            around()
    except BaseException as error:
        return error
    finally:
        signal.signal(signal.SIGALRM, before)


def test_what_a_handler_raises_after_a_failure_comes_after_it():
    failure, again = ValueError(), ValueError()
    assert contexts(raised_in_the_end(late_after_another, failure)) == ["Late", "OSError", "ValueError", "KeyError"]
    assert contexts(raised_in_the_end(late, failure)) == ["Late", "ValueError", "KeyError"]
    # The same exception twice is no circle.
    assert contexts(raised_in_the_end(lambda _number, frame: raising(again)(), again)) == ["ValueError", "KeyError"]
    # Nobody sees the end of an iterator.
    assert contexts(raised_in_the_end(late, StopIteration())) == ["Late", "KeyError"]


def test_hooks_that_nobody_holds_are_collected():
    def circle():
        def hook():
            return around

        around = _agent.Around(hook, hook, hook, hook, False)
        return weakref.ref(hook)

    hook = circle()
    gc.collect()
    assert hook() is None
