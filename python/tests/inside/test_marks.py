"""Boundaries as they are cut: with their phases, ever more rarely, and as the program says itself."""

from __future__ import annotations

import sys

EPOCH, STEPS = 0, 1
TWO_RANGES = """
for epoch in range(4):
    for step in range(5):
        train_step()
    validate()
"""


def test_phases_are_told_with_the_boundaries(train):
    told = train("for epoch in range(3):\n    for i in range(4):\n        train_step()\n    validate()")
    run, training, validation = 0, 1, 2
    assert told.phases() == [run, validation, validation]
    assert set(told.phases(STEPS)) == {training}


def test_loops_are_reported_once(train):
    told = train(TWO_RANGES)
    (epoch, step) = told.of("loop")
    assert epoch[:1] + epoch[2:] == [EPOCH, step[2] - 1, "<module>", "epoch", "loop"]
    assert step[:1] + step[2:] == [STEPS, epoch[2] + 1, "<module>", "step", "loop"]


def test_comprehensions_count_to_the_function_around_them(train):
    told = train("def main():\n    for k in range(3):\n        sum(train_step() for _ in range(4))\nmain()")
    assert {call[3] for call in told.of("loop")} <= {"main", "<genexpr>"}
    assert {call[3] for call in told.of("loop")} == {"main"} or sys.version_info < (3, 11)


def test_a_loader_is_named_as_the_source(train):
    told = train("""
    steps = 0
    while steps < 18:
        for x, y in DataLoader(data, batch_size=8):
            train_step(x=x)
            steps += 1
    """)
    assert (EPOCH, "dataloader") in told.sources


def test_marks_override_what_is_seen(train):
    source = """
    import caulk

    for outer in range(3):
        caulk.epoch()
        for number in range(2):
            for i in range(4):
                train_step()
                if i % 2:
                    caulk.step()
            with caulk.phase("test"):
                validate()
    """
    told = train(source)
    assert told.epochs == [0, 1, 2]
    assert [call[3] for call in told.of("boundary") if call[0] == EPOCH] == [0, 3, 3]
    # Two steps were seen before the program said its first.
    assert told.steps == 2 + 12
    assert {"caulk.epoch", "caulk.step"} == {source for _, source in told.sources}


def test_marks_do_without_torch(run):
    source = """
    import caulk
    for epoch in range(3):
        caulk.epoch()
        for _ in range(5):
            caulk.step()
        with caulk.phase("validation"):
            pass
    """
    told = run(source)
    assert told.epoch_steps == [0, 5, 10]
    assert told.phases() == [0, 2, 2]
    assert told.steps == 15


def test_steps_are_marked_ever_more_rarely(train):
    told = train("for step in range(1000):\n    train_step()")
    marks = [call[1] for call in told.of("boundary") if call[0] == STEPS]
    assert marks[:32] == list(range(2, 34))
    assert marks[32:36] == [34, 36, 38, 40]
    assert marks[-1] - marks[-2] == 16
    assert len(marks) < 6 * 32


def test_short_epochs_are_marked_ever_more_rarely(train):
    told = train("for epoch in range(300):\n    for step in range(2):\n        train_step()")
    assert told.epochs[:64] == list(range(64))
    assert all(b - a in (1, 2, 4) for a, b in zip(told.epochs, told.epochs[1:]))
    assert 100 < len(told.epochs) < 300


def test_few_steps_are_marked_within_known_epochs(train):
    told = train("for epoch in range(6):\n    for step in range(100):\n        train_step()")
    marks = [call[1] for call in told.of("boundary") if call[0] == STEPS]
    assert len([mark for mark in marks if mark > 101]) <= 5 * 8
    assert all(call[4] == 0 for call in told.of("boundary") if call[0] == STEPS and call[1] > 101)


def test_a_census_waits_for_the_end_of_a_backward_pass(train):
    source = """
    import caulk
    from caulk import _agent
    train_step()
    told = []
    original = _agent.boundary
    def boundary(*arguments):
        told.append((arguments[-1], _agent.passes()))
        original(*arguments)
    _agent.boundary = boundary
    inside = [torch.optim.SGD([p], lr=0.01) for p in other.parameters()]
    for each, p in zip(inside, other.parameters()):
        p.register_post_accumulate_grad_hook(lambda _, each=each: each.step())
    for epoch in range(4):
        for i in range(4):
            backward(other)
    assert any(level for level, _ in told), told
    assert not [depth for level, depth in told if level and depth], told
    """
    assert len(train(source).epochs) >= 3
