"""Where memory of a GPU is: in torch's allocator or outside it, in tensors or in pieces; by a stand-in for a card."""

from __future__ import annotations

import pytest
from card import CARD

MB = 1 << 20

OTHER_ALLOCATOR = (
    CARD
    + """
class Memory:
    def __init__(self, size):
        self.ptr, self.size = id(self), size


class Pointer:
    def __init__(self, size):
        self.mem = Memory(size)


class ndarray:
    def __init__(self, size):
        self.data = Pointer(size)


cupy = stand_in("cupy", ndarray=ndarray)
card.live, card.reserved, card.outside = 400 * MB, 500 * MB, 450 * MB
spectra = []


def step():
    spectra.append(cupy.ndarray(4 * MB))  # leak
    card.outside += 4 * MB


for epoch in range(10):
    for _ in range(10):
        step()
    caulk.epoch()
"""
)


def test_arrays_of_another_library_are_named_by_their_bytes_on_the_device(run_caulk):
    run = run_caulk(OTHER_ALLOCATOR)
    verdict = run.verdict("cuda_rest")
    assert verdict is not None and verdict["state"] == "grows", run.told()
    assert verdict["bytes_per_epoch"] == pytest.approx(40 * MB, rel=0.01), run.told()
    assert verdict["limit"] == {"kind": "gpu", "bytes": 8000 * MB}, run.told()
    line = OTHER_ALLOCATOR[: OTHER_ALLOCATOR.index("# leak")].count("\n") + 1
    finding = run.alarm_at("program.py", line)
    assert finding is not None and len(run.alarms) == 1, run.told()
    assert finding["growth"]["series"] == "cuda_rest", run.told()
    assert finding["growth"]["bytes_per_epoch"] == pytest.approx(40 * MB, rel=0.1), run.told()
    assert "GPU memory outside torch's allocator grows by 40.0 MB per epoch" in run.stderr, run.told()
    (gpu,) = run.report["gpus"]
    ledger = gpu["ledger"]
    parts = ["context", "torch_live", "torch_free", "torch_gaps", "graph_pools", "rest"]
    assert sorted(ledger) == sorted(["used", *parts]) and ledger["used"] == sum(ledger[part] for part in parts)
    assert (ledger["torch_live"], ledger["torch_free"]) == (400 * MB, 100 * MB), run.told()
    assert ledger["used"] == 500 * MB + 850 * MB, run.told()
    assert any("outside torch" in note for note in run.notes_about("gpu-device")), run.told()


KEEPS = (
    CARD
    + """
card.live, card.reserved, card.outside = 400 * MB, 500 * MB, 450 * MB
graph = segment((1, 60 * MB), (0, 20 * MB), pool=(0, 7))
for epoch in range(10):
    {change}
    caulk.epoch()
"""
)
FRAGMENTED = """card.reserved += 100 * MB; card.gaps += 95 * MB; card.settings = {"expandable_segments": {set}}
    card.segments = [segment((1, 300 * MB), (0, card.gaps), (1, 100 * MB)), graph]"""
PINNED = "card.pinned += 64 * MB; card.pinned_live = 32 * MB"


def keeps(run_caulk, change):
    run = run_caulk(KEEPS.replace("{change}", change))
    assert run.code == 0 and not run.alarms, run.told()
    (finding,) = run.findings
    assert (finding["class"], finding["severity"]) == ("allocator-fragmentation", "info"), run.told()
    return run, finding


@pytest.mark.parametrize("is_set", [False, True])
def test_free_memory_in_pieces_is_told_from_a_leak(run_caulk, is_set):
    run, finding = keeps(run_caulk, FRAGMENTED.replace("{set}", str(is_set)))
    assert run.verdict("cuda_reserved")["state"] == "grows", run.told()
    assert run.verdict("cuda_allocated")["state"] == "flat", run.told()
    assert run.report["outlook"]["state"] != "grows", run.told()
    assert finding["growth"]["series"] == "cuda_reserved", run.told()
    assert "the largest free block has 950 MB, the largest tensor 300 MB" in finding["message"], run.told()
    assert ("expandable_segments" in finding["fix"]["description"]) != is_set, run.told()
    ledger = run.report["gpus"][0]["ledger"]
    assert (ledger["graph_pools"], ledger["torch_live"]) == (80 * MB, 340 * MB), run.told()


def test_a_pool_of_pinned_memory_that_only_grows_is_retention(run_caulk):
    run, finding = keeps(run_caulk, PINNED)
    assert run.verdict("pinned_pool")["state"] == "grows", run.told()
    assert finding["growth"]["series"] == "pinned_pool", run.told()
    assert "pinned" in finding["message"] and "32.0 MB in use" in finding["message"], run.told()


LIMITED = (
    CARD
    + """
card.fraction, card.reserved, card.outside = 0.25, 1000 * MB, 450 * MB
for epoch in range(10):
    card.live = (500 + 20 * epoch) * MB
    caulk.epoch()
"""
)


def test_the_forecast_goes_to_the_limit_that_the_process_has_set_itself(run_caulk):
    run = run_caulk(LIMITED)
    verdict = run.verdict("cuda_allocated")
    assert verdict["limit"] == {"kind": "cuda_fraction", "bytes": 2000 * MB}, run.told()
    assert verdict["oom_in_s"] is not None, run.told()
