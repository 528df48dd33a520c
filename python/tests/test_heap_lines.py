"""`caulk report --lines`: what a real program's lines hold, against what they are known to hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import CAULK, Run, marked_line, program_environment

EPOCHS = 10
MB = 1 << 20

KNOWN = """\
import caulk


def keep(kept):
    kept.append(bytearray(16 << 20))  # grows


def hold():
    return bytearray(80 << 20)  # stays


def lend(epoch):
    if epoch == 3:
        return bytearray(48 << 20)  # passes


def main():
    kept, held = [], hold()
    for epoch in range(10):
        keep(kept)
        lent = lend(epoch)
        caulk.epoch()
        del lent


main()
"""

FIGURE = r"([+-]?[\d.]+) (B|KB|MB)(?: ±\d+%)?"
UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}


def lines_of(run: Run, program: Path, *options: str) -> str:
    assert run.code == 0, run.told()
    command = [CAULK, "report", run.folder / "run", f"--lines={program}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=program_environment()).stdout


def heap_of(run: Run, program: Path) -> dict:
    return json.loads(lines_of(run, program, "--format", "json"))


def figures(text: str) -> dict[int, list[float | None]]:
    """Live, growth and peak beside the source, by line, in bytes; the columns are as wide as the head's."""
    head = next(line for line in text.splitlines() if "live" in line and "peak" in line)
    ends = [head.index(word) + len(word) for word in ("live", "epoch", "peak")]
    found = {}
    for row in text.splitlines():
        if (match := re.match(r"(.*?) +(\d+) │", row)) is None:
            continue
        columns = [match[1].ljust(ends[2])[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        parsed = [re.search(FIGURE, column) for column in columns]
        found[int(match[2])] = [float(part[1]) * UNITS[part[2]] if part else None for part in parsed]
    return found


def test_live_growth_and_peak_stand_beside_the_source(run_caulk):
    run: Run = run_caulk(KNOWN)
    program = run.folder / "program.py"
    text = lines_of(run, program)
    source = program.read_text().splitlines()
    # All of the file is shown.
    assert all(f" {number} │ {line}".rstrip() in text for number, line in enumerate(source, 1)), text
    known = figures(text)
    # Blocks of 32 times the sampling interval are exact; a `bytearray` has a head and an end.
    exact = {
        "# grows": [16 * EPOCHS * MB, 16 * MB, 16 * EPOCHS * MB],
        "# stays": [80 * MB, None, 80 * MB],
        "# passes": [0, None, 48 * MB],
    }
    for mark, expected in exact.items():
        found = known[marked_line(program, mark)]
        for figure, wanted in zip(found, expected, strict=True):
            assert (figure is None) == (wanted is None), (mark, found, text)
            assert wanted is None or figure == pytest.approx(wanted, abs=0.01 * MB), (mark, found, text)
    others = [number for number, line in enumerate(source, 1) if "#" not in line]
    assert all((known[number][0] or 0) < MB for number in others), text


FINE = """\
import caulk


def keep(kept):
    kept.extend(bytearray(40_000) for _ in range(200))  # grows


def main():
    kept = []
    for epoch in range(8):
        keep(kept)
        caulk.epoch()


main()
"""


@pytest.mark.parametrize(("options", "interval"), [((), 512 << 10), (("--precise",), 128 << 10)])
def test_what_is_sampled_more_often_is_known_better(run_caulk, options, interval):
    run: Run = run_caulk(FINE, options=options)
    program = run.folder / "program.py"
    heap = heap_of(run, program)
    (profile,) = heap["profiles"]
    assert profile["interval"] == interval, profile
    (line,) = [line for line in heap["lines"] if line["line"] == marked_line(program, "# grows")]
    exact = 8 * 200 * 40_000
    live = line["live"]
    assert live["bytes"] == pytest.approx(exact, abs=4 * live["deviation"] + 0.02 * exact), line
    # Of n bytes in small blocks that are sampled every T, the error is sqrt(n T).
    assert live["deviation"] == pytest.approx((exact * interval) ** 0.5, rel=0.2), line


COUNTED = """\
import ctypes
import os
import re
import sys
import tempfile

import caulk


class Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks top".split()]


library = ctypes.CDLL(None)
library.mallinfo2.restype = Statistics


def small_objects():
    # What pymalloc has handed out, by its own account, which it writes to the standard error.
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(kept, 2)
        os.close(kept)
        file.seek(0)
        (text,) = re.findall(r"# bytes in allocated blocks += +([\\d,]+)", file.read().decode())
    return int(text.replace(",", ""))


def in_use():
    statistics = library.mallinfo2()
    return statistics.uordblks + statistics.hblkhd + small_objects()


def main():
    counts = len(sys.argv) > 1
    before = in_use() if counts else 0
    rows, frames, texts = [], [], {}
    for epoch in range(8):
        rows.extend({"epoch": epoch, "at": at, "loss": at / 7} for at in range(20_000))
        frames.extend(bytearray(30_000) for _ in range(100))
        texts.update((f"{epoch}/{at}", "x" * 300) for at in range(10_000))
        frames.append(bytearray(5_000_000))
        rows = rows[len(rows) // 4 :]
        if counts and epoch == 7:
            print(in_use() - before)
        caulk.epoch()


main()
"""


def test_the_sum_of_all_samples_agrees_with_what_the_allocators_count(run_caulk):
    run: Run = run_caulk(COUNTED)
    program = run.folder / "program.py"
    heap = heap_of(run, program)
    # Alone: while small objects are sampled, the interpreter does not tell of them.
    command = [sys.executable, program, "count"]
    exact = int(subprocess.run(command, capture_output=True, text=True, check=True, env=program_environment()).stdout)
    assert exact > 60 * MB, exact
    (profile,) = heap["profiles"]
    deviation = profile["live"]["deviation"]
    assert 0 < deviation < 0.2 * exact, heap
    # Everything that the program has made since it was first counted is charged to its lines. What the allocators take for
    # themselves, heads and rounding, is no part of it.
    live = sum(line["live"]["bytes"] for line in heap["lines"])
    assert live == pytest.approx(exact, abs=3 * deviation + 0.03 * exact), heap
    # So is not what the interpreter has made before.
    assert live <= profile["live"]["bytes"] < live + 20 * MB, heap
