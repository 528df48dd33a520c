"""The program's side of the guard: which requests are answered, where, and how."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import caulk
import caulk._bootstrap
import pytest
from caulk import _guard

CLEANUP, CHECKPOINT, WHERE, STOP_AT, CANCEL = range(5)
DONE, FAILED, AT, ARRIVED = range(4)


class Agent:
    """Hands out requests and writes down what it is told."""

    def __init__(self):
        self.requests = []
        self.answers = []
        self.standings = []
        self.errors = []
        #: What a handler of a signal has raised.
        self.raised = ()

    def raised_by_handler(self, error, programs=False):
        return isinstance(error, self.raised)

    def asked(self, seconds=0.0):
        return self.requests.pop(0) if self.requests else None

    def answer(self, number, outcome, steps, freed, path, text):
        self.answers.append((number, outcome, steps, path, text))

    def standing(self, *told):
        self.standings.append(told)

    def uncaught(self, *told):
        self.errors.append(told)

    def memory_figures(self):
        return 100, 0, 0, None

    def trim_malloc(self):
        return True


@pytest.fixture
def guarded(monkeypatch):
    """A program under the guard, that has given nothing to `on_checkpoint` yet."""
    monkeypatch.setattr(caulk, "_savers", [])
    agent = Agent()
    marks = SimpleNamespace(agent=agent, steps=0, epoch=0, _connect=lambda: True)
    return _guard.Guarded(marks, "run")


def step(guarded, *requests):
    guarded._agent.requests.extend(requests)
    guarded._marks.steps += 1
    guarded.stepped()


def outcomes(guarded):
    return [answer[:2] for answer in guarded._agent.answers]


def test_a_checkpoint_is_made_at_the_next_place_between_two_steps(guarded, tmp_path):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(guarded._marks.steps) or tmp_path / "a.pt")
    step(guarded, (1, CHECKPOINT, 0))
    assert saved == []
    guarded.between()
    guarded.between()
    assert saved == [1]
    assert guarded._agent.answers == [(1, DONE, 1, str(tmp_path / "a.pt"), "")]


def test_without_such_a_place_it_is_made_after_the_next_step(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(guarded._marks.steps))
    step(guarded, (1, CHECKPOINT, 0))
    step(guarded)
    assert saved == [2] and guarded._agent.answers == [(1, DONE, 2, "", "")]


def test_what_fails_is_told_and_the_program_goes_on(guarded):
    @caulk.on_checkpoint
    def save():
        raise OSError("disk full")

    step(guarded, (1, CHECKPOINT, 0))
    guarded.between()
    assert guarded._agent.answers == [(1, FAILED, 1, "", "OSError: disk full")]


def test_what_a_handler_of_a_signal_raises_while_a_state_is_saved_is_told_and_the_programs(guarded):
    @caulk.on_checkpoint
    def save():
        raise TimeoutError("late")

    guarded._agent.raised = TimeoutError
    step(guarded, (1, CHECKPOINT, 0))
    with pytest.raises(TimeoutError):
        guarded.between()
    assert guarded._agent.answers == [(1, FAILED, 1, "", "TimeoutError: late")]


def test_other_threads_are_left_alone(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(1))
    step(guarded, (1, CHECKPOINT, 0))
    thread = threading.Thread(target=lambda: (guarded.between(), guarded.stepped()))
    thread.start()
    thread.join()
    assert saved == []


def test_ranks_stop_at_the_common_step_and_act_when_told(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(guarded._marks.steps))
    step(guarded, (1, WHERE, 0))
    step(guarded, (2, STOP_AT, 4))
    step(guarded)
    guarded.between()
    assert outcomes(guarded) == [(1, AT)]
    step(guarded)
    guarded._agent.requests.append((3, CHECKPOINT, 0))
    guarded.between()
    assert saved == [4] and outcomes(guarded) == [(1, AT), (2, ARRIVED), (3, DONE)]


def test_a_program_without_places_between_its_steps_stops_in_the_step(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(guarded._marks.steps))
    step(guarded, (1, STOP_AT, 3))
    step(guarded)
    assert outcomes(guarded) == []
    guarded._agent.requests.append((2, CHECKPOINT, 0))
    step(guarded)
    assert saved == [3] and outcomes(guarded) == [(1, ARRIVED), (2, DONE)]


def test_a_rank_that_has_waited_in_vain_does_not_act_alone(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(1))
    step(guarded, (1, STOP_AT, 1))
    guarded.between()
    step(guarded, (2, CHECKPOINT, 0))
    guarded.between()
    assert saved == [] and outcomes(guarded) == [(1, ARRIVED), (2, FAILED)]


def test_a_rank_past_the_common_step_says_so(guarded):
    guarded._marks.steps = 9
    step(guarded, (1, STOP_AT, 5))
    guarded.between()
    assert guarded._agent.answers == [(1, AT, 10, "", "")]


def test_ranks_that_are_told_to_go_on_do_nothing(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(1))
    step(guarded, (1, STOP_AT, 1))
    guarded._agent.requests.append((2, CANCEL, 0))
    guarded.between()
    guarded.between()
    assert saved == [] and outcomes(guarded) == [(1, ARRIVED)]


def test_a_cleanup_is_done_at_once(guarded):
    step(guarded, (1, CLEANUP, 0))
    assert outcomes(guarded) == [(1, DONE)]


def test_a_forked_child_forgets_what_its_parent_was_asked_for(guarded):
    saved = []
    caulk.on_checkpoint(lambda: saved.append(1))
    step(guarded, (1, CHECKPOINT, 0))
    guarded.forked()
    guarded.between()
    assert saved == []


def test_the_way_to_save_is_told_as_soon_as_there_is_one(guarded):
    step(guarded)
    caulk.on_checkpoint(lambda: None)
    step(guarded)
    assert [told[2] for told in guarded._agent.standings] == ["", "caulk.on_checkpoint"]


def test_under_slurm_lightnings_signal_is_spared(guarded, monkeypatch):
    trainer = SimpleNamespace(default_root_dir=".")
    for variable, spared in [("", False), ("77", True)]:
        monkeypatch.setenv("SLURM_JOB_ID", variable) if variable else monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        guarded.framework = _guard.Lightning(trainer, "run")
        step(guarded)
        guarded._next_tell = 0.0
        assert guarded._agent.standings[-1][2:4] == ("Lightning", spared)


def test_the_last_two_checkpoints_of_lightning_stay(tmp_path):
    class Trainer:
        default_root_dir = str(tmp_path)
        is_global_zero = True
        global_step = 0

        def save_checkpoint(self, path):
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("state")
            # Clocks of file systems tick rarely.
            os.utime(target, (self.global_step, self.global_step))

    trainer = Trainer()
    for trainer.global_step in (3, 9, 20):
        # Each in a life of its own.
        path = _guard.Lightning(trainer, "run-1").save(1)
    folder = tmp_path / "caulk_checkpoints" / "run-1"
    assert sorted(file.name for file in folder.iterdir()) == ["step-20.ckpt", "step-9.ckpt"]
    assert path == str(folder / "step-20.ckpt")


def test_an_exception_that_ends_the_program_is_told_without_calling_its_code(guarded, monkeypatch):
    class Failure(MemoryError):
        def __str__(self):
            raise AssertionError("called")

    monkeypatch.setattr(sys, "last_value", Failure("no", "memory", 3), raising=False)
    guarded.bye()
    ((types, text),) = guarded._agent.errors
    assert types[:2] == ["Failure", "MemoryError"] and text == "no memory"


def test_a_gpu_is_asked_only_where_the_program_uses_it(guarded, monkeypatch):
    emptied = []
    cuda = SimpleNamespace(
        _initialized=True,
        device_count=lambda: 2,
        memory_reserved=lambda device: 0 if device or emptied else 6,
        get_device_properties=lambda device: SimpleNamespace(total_memory=80),
        empty_cache=lambda: emptied.append(1),
    )
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    step(guarded, (1, CLEANUP, 0))
    # The second device is not the program's.
    assert guarded._agent.standings[-1][4] == (6, 80) and emptied == [1]
    cuda._initialized = False
    guarded._next_tell = 0.0
    step(guarded)
    assert guarded._agent.standings[-1][4] == (0, 0)
