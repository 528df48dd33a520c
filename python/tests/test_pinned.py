"""What a container pins beyond its elements: each storage once over all of it, and the line that made it."""

from __future__ import annotations

import pytest

EPOCHS = 16
# 512 x 1024 floats.
ACTIVATION = 2 << 20


def pinned_by(run_caulk, program: str, name: str) -> dict:
    run = run_caulk(program)
    assert run.code == 0, run.told()
    findings = [finding for finding in run.findings if name in finding["holder"]]
    assert findings and findings[0]["pinned"], run.told()
    return findings[0]


STATES = """\
import caulk
import torch

weight = torch.nn.Parameter(torch.eye(1024))
kept = []


def forward(state):
    return -torch.tanh(state @ weight)


def main():
    state = torch.randn(512, 1024)
    for epoch in range({epochs}):
        state = forward(state)
        kept.append(state)
        caulk.epoch()


main()
"""


def test_a_storage_that_many_elements_reach_counts_once(run_caulk):
    finding = pinned_by(run_caulk, STATES.format(epochs=EPOCHS), "kept")
    pinned, elements = finding["pinned"], finding["growth"]["elements"]
    assert finding["class"] in ("state-not-detached", "graph-kept-in-container"), finding
    # Of every state its tanh, which is saved; the states themselves are elements. The first input is a leaf.
    assert pinned["storages"] == pytest.approx(elements, abs=2), finding
    assert pinned["saved_bytes"] == pytest.approx(elements * ACTIVATION, rel=0.25), finding
    made = pinned["made_at"][0]
    assert (made["line"], made["function"]) == (9, "forward")
    assert made["bytes"] == pytest.approx(elements * ACTIVATION, rel=0.4), finding


CHECKPOINTED = """\
import caulk
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.nn.Parameter(torch.eye(1024))
kept = []


def block(features):
    return torch.relu(features @ weight)


def main():
    for epoch in range({epochs}):
        features = torch.tanh(torch.randn(512, 1024) @ weight)
        kept.append([checkpoint(block, features, use_reentrant=False).sum()])
        caulk.epoch()


main()
"""


def test_inputs_of_a_checkpointed_part_are_found_behind_its_hooks(run_caulk):
    finding = pinned_by(run_caulk, CHECKPOINTED.format(epochs=EPOCHS), "kept")
    # The product's input and the tanh, which both the checkpoint and the graph before it keep.
    expected = 2 * finding["growth"]["elements"] * ACTIVATION
    assert finding["pinned"]["saved_bytes"] == pytest.approx(expected, rel=0.15), finding


VIEWS = """\
import caulk
import torch

kept = []


def main():
    for epoch in range({epochs}):
        kept.append({view})
        caulk.epoch()


main()
"""


@pytest.mark.parametrize(
    "view",
    ["torch.randn(512, 1024)[0]", "torch.randn(512, 1024).numpy()[0]", "torch.randn(512, 1024)[0].numpy()"],
    ids=["tensor", "array of a tensor", "array of a view"],
)
def test_small_views_pin_what_they_view(run_caulk, view):
    finding = pinned_by(run_caulk, VIEWS.format(epochs=EPOCHS, view=view), "kept")
    assert finding["class"] == "view-pins-storage", finding
    expected = finding["growth"]["elements"] * ACTIVATION
    assert finding["pinned"]["tensor_bytes"] == pytest.approx(expected, rel=0.15), finding
