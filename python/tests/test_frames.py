"""The agent reads the program's frames as they run, without making a dict of their locals."""

from __future__ import annotations

import sys
import threading

import pytest

_agent = pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

MODULE_LEVEL = [1]


def here() -> int:
    """Line of the caller."""
    return sys._getframe(1).f_lineno


def test_locals_can_be_read_here():
    assert _agent.frames_usable()


def test_a_functions_variables_come_back_as_they_are():
    def outer(plain, captured_argument, *rest, keyword=None):
        own, captured, gone = [1], [2], [3]
        del gone

        def inner():
            used = (captured, captured_argument)
            return _agent.read_locals(sys._getframe()), used

        found, used = inner()
        assert found.keys() == {"captured", "captured_argument", "used"}
        assert found["captured"] is captured and found["captured_argument"] is captured_argument
        assert found["used"] is used
        frame = sys._getframe()
        expected = {
            "plain": plain,
            "captured_argument": captured_argument,
            "rest": rest,
            "keyword": keyword,
            "own": own,
            "captured": captured,
        }
        for name, value in expected.items():
            assert _agent.read_local(frame, name) is value, name
        for name in ("gone", "unheard_of"):
            with pytest.raises(LookupError):
                _agent.read_local(frame, name)

    outer([4], [5], [6], keyword=[7])


def test_a_suspended_generator_can_be_read():
    def generate(first):
        second = [first]
        yield second

    generator = generate([1])
    second = next(generator)
    assert _agent.read_local(generator.gi_frame, "second") is second


def test_a_frame_of_another_thread_can_be_read():
    ready, done = threading.Event(), threading.Event()
    seen = {}

    def wait():
        mine = seen["mine"] = [1, 2]
        ready.set()
        done.wait()
        return mine

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    frame = sys._current_frames()[thread.ident]
    while frame.f_code is not wait.__code__:
        frame = frame.f_back
    found = _agent.read_local(frame, "mine")
    done.set()
    thread.join()
    assert found is seen["mine"]


def test_a_modules_frame_gives_its_globals_and_a_class_body_nothing():
    namespace = {"read": _agent.read_local, "frame": sys._getframe, "read_all": _agent.read_locals}
    exec(
        "value = [1]\nsame = read(frame(), 'value') is value\nclass C:\n  x = 1\n  found = read_all(frame())", namespace
    )
    assert namespace["same"]
    assert namespace["C"].found == {}


def test_reading_makes_no_dict_and_keeps_nothing_alive():
    class Heavy:
        pass

    def reads():
        heavy = Heavy()
        before = sys.getrefcount(heavy)
        for _ in range(3):
            _agent.read_locals(sys._getframe())
        assert sys.getrefcount(heavy) == before

    reads()


def test_the_users_frames_are_found():
    def innermost():
        return _agent.user_frame(), here()

    (file, line, function), expected = innermost()
    assert (file, line) == (__file__, expected)
    assert function.split(".")[-1] == "innermost"
    assert next(frame[2].split(".")[-1] for frame in _agent.user_stack(2)) == "test_the_users_frames_are_found"
    # Through the standard library.
    import functools

    assert functools.reduce(lambda _, __: _agent.user_frame(), [1, 2])[0] == __file__


def test_a_comprehension_counts_to_its_function():
    found = [_agent.user_frame() for _ in [1]] + list(_agent.user_frame() for _ in [1])
    assert {function.split(".")[-1] for _, _, function in found} == {"test_a_comprehension_counts_to_its_function"}


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        (__file__, True),
        (pytest.__file__, False),
        (threading.__file__, False),
        ("<frozen importlib._bootstrap>", False),
        ("<string>", True),
        ("<stdin>", True),
        ("/tmp/ipykernel_4711/123.py", True),
        (_agent.__file__.rsplit("/", 1)[0] + "/_bootstrap.py", False),
    ],
)
def test_user_files_are_told_from_others(filename, expected):
    assert _agent.is_user_file(filename) is expected
