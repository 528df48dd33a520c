"""Alarms of `caulk run`: what is told while the program runs."""

from __future__ import annotations

PROGRAM = """
import time
import caulk
kept = []
for epoch in range(7):
    for step in range(20):
        time.sleep({slow} if epoch >= 5 else 0.01)
        caulk.step()
    kept.append(bytearray(30 << 20))
    caulk.epoch()
"""


def alarms(run) -> list[str]:
    return run.notes_about("alarm")


def test_growth_and_slow_steps_are_told_once_and_repeated_by_the_report(run_caulk):
    run = run_caulk(PROGRAM.format(slow=0.2), options=["--alarm-growth", "50MB"])
    assert run.code == 0, run.told()
    found = alarms(run)
    assert any("since its first epoch" in alarm for alarm in found), found
    assert any("times as long as before" in alarm for alarm in found), found
    assert len(found) == 2, found
    assert run.stderr.count("caulk: warning: process") == 1, run.stderr


def test_nothing_is_told_below_the_thresholds_or_where_nobody_wants_it(run_caulk):
    assert alarms(run_caulk(PROGRAM.format(slow=0.01), options=["--alarm-slow", "50"])) == []
    run = run_caulk(PROGRAM.format(slow=0.01), options=["--alarm-growth", "50MB", "--no-alarms"])
    assert alarms(run) == []
