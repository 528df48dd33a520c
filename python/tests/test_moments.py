"""Programs without steps: boundaries by time lie between calls of the model, where as much is alive as the last time."""

from __future__ import annotations

from harness import PROGRAMS, marked_line

PROGRAM = PROGRAMS / "activations.py"
KB = 1024


def width(verdict: dict) -> float:
    low, high = verdict["interval"]
    return high - low


def test_what_is_alive_within_a_call_is_no_noise(run_caulk):
    done = run_caulk(PROGRAM)
    verdict = done.verdict()
    assert verdict["unit"] == "seconds", done.told()
    assert verdict["state"] in ("flat", "plateaus", "sawtooth"), done.told()
    # Megabytes come and go within each call.
    assert width(verdict) < 100 * KB, done.told()
    assert done.alarms == [], done.told()


def test_what_each_call_keeps_is_called(run_caulk):
    done = run_caulk(PROGRAM, "keep")
    verdict = done.verdict()
    assert verdict["state"] == "grows", done.told()
    assert done.alarm_at("activations.py", marked_line(PROGRAM)), done.told()
