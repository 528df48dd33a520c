"""Steps of trainings that only replay a captured graph of CUDA: what Python does is captured once, and seen no more."""

from __future__ import annotations

import pytest

#: Stands in for the class of torch that needs a device, with hooks as torch's own has them.
GRAPH = """
import caulk
from caulk import _hooks_cuda

class Graph:
    def capture_begin(self, pool=None):
        pass

    def capture_end(self):
        pass

    def replay(self):
        pass

torch.cuda.CUDAGraph = Graph
_hooks_cuda.install(torch, caulk._marks, caulk._marks.torch_steps, lambda function: None)

def capture(body):
    graph = Graph()
    graph.capture_begin()
    body()
    graph.capture_end()
    return graph
"""
LOOP = """
for epoch in range(4):
    for step in range(10):
        graph.replay()
    validate()
"""


def replayed(train, captured):
    return train(f"{GRAPH}\nfor _ in range(3):\n    train_step()\ngraph = capture({captured}){LOOP}")


def test_replays_of_a_captured_step_are_steps_with_epochs(train):
    seen = replayed(train, "train_step")
    # Nothing runs while it is captured: the first replay is the step that was captured.
    steps, epochs = seen.of("bye", seen.pids[0])[-1]
    assert (steps, epochs) == (3 + 40, 4)


@pytest.mark.parametrize("captured", ["lambda: None", "backward"], ids=["inference", "a pass alone"])
def test_replays_that_train_nothing_are_no_steps(train, captured):
    assert replayed(train, captured).steps == 3
