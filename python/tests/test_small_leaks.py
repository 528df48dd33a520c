"""What is small: tensors of a few numbers, of which each takes hundreds of bytes, and leaks that a day makes large."""

from __future__ import annotations

import pytest

SMALL_TENSORS = """\
import caulk
import torch

kept = []


def keep(count):
    for _ in range(count):
        kept.append({made})


def main():
    for epoch in range(12):
        keep(4000)
        caulk.epoch()


main()
"""


@pytest.mark.parametrize("made", ["torch.zeros(8)", "torch.zeros(64)[1:3]"])
def test_small_tensors_are_counted_with_what_torch_takes_for_each(run_caulk, made):
    run = run_caulk(SMALL_TENSORS.format(made=made))
    assert [finding["sites"][0]["line"] for finding in run.alarms] == [9], run.told()
    growth, verdict = run.alarms[0]["growth"], run.verdict()
    own = growth.get("in_use_per_unit") or growth["bytes_per_unit"]
    assert own == pytest.approx(verdict["bytes_per_unit"], rel=0.35), run.told()
