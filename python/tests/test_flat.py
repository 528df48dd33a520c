"""`caulk.flat`: functions, loops and tests that must not keep more with every repetition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

import caulk

MIB = 1024**2
HISTORY: list[bytearray] = []


@pytest.fixture(autouse=True)
def empty_history():
    yield
    HISTORY.clear()


def keeps():
    HISTORY.append(bytearray(MIB))


def test_a_function_that_keeps_more_fails_with_container_and_line():
    with pytest.raises(caulk.LeakFound) as caught:
        caulk.flat(keeps)()
    assert caught.value.growth >= 4 * MIB
    grown = caught.value.grown[0]
    assert "HISTORY" in str(grown.held_by)
    assert any("HISTORY.append" in line.text and Path(line.file) == Path(__file__) for line in grown.lines)


def test_a_flat_function_returns_its_result():
    calls = []

    @caulk.flat(repeats=3, warmup=1)
    def epoch(count):
        calls.append(None)
        return [bytearray(MIB) for _ in range(count)]

    assert len(epoch(2)) == 2 and len(calls) == 4


def test_a_cache_that_fills_up_is_flat():
    @caulk.flat(repeats=8)
    def fills():
        if len(HISTORY) < 5:
            keeps()

    fills()


def test_a_loop_is_judged_at_its_end():
    turns = 0
    with pytest.raises(caulk.LeakFound, match="HISTORY"):
        for _ in caulk.flat(range(8)):
            turns += 1
            keeps()
    assert turns == 8
    for _ in caulk.flat(range(8)):
        _rows = bytearray(MIB)


def test_wrong_uses_are_refused():
    async def later():
        pass

    with pytest.raises(TypeError, match="async def"):
        caulk.flat(later)
    with pytest.raises(ValueError, match="at least 3 repeats"):
        caulk.flat(repeats=2)


def test_a_marked_test_fails_with_container_and_line(tmp_path):
    program = tmp_path / "test_marked.py"
    program.write_text(
        "import pytest\nkept = []\n"
        "@pytest.mark.flat\ndef test_keeps(): kept.append(bytearray(1024**2))\n"
        "@pytest.mark.flat(repeats=3)\ndef test_flat(): bytearray(1024**2)\n"
    )
    known = subprocess.run(
        [sys.executable, "-m", "pytest", "--markers"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    plugin = () if "flat(" in known else ("-p", "caulk._pytest")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "kept" in done.stdout and "test_marked.py" in done.stdout
