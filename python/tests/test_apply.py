"""`caulk run --apply`: loaders become no larger than a plan says."""

from __future__ import annotations

import json
import sys

import pytest
from harness import PROGRAMS

PLAN = """
schema: 1
training:
  batch_size: 8  # was 32
  accumulate_grad_batches: 4
loader:
  num_workers: {workers}
  prefetch_factor: 2
  pin_memory: false
  persistent_workers: false
validation:
  batch_size: 16
"""


def applied(run_caulk, tmp_path, *options: str, workers: int = 1, **environment: str):
    """The run, and each loader's settings in it."""
    plan = tmp_path / "safe.yaml"
    plan.write_text(PLAN.format(workers=workers))
    program = [sys.executable, str(PROGRAMS / "loaders_of_all_kinds.py")]
    run = run_caulk(program, options=["--apply", str(plan), *options], env=environment)
    assert run.code == 0, run.told()
    return run, json.loads(run.stdout)


def test_loaders_get_what_the_plan_says_and_never_more(run_caulk, tmp_path):
    run, loaders = applied(run_caulk, tmp_path)
    training = {"batch_size": 8, "num_workers": 1, "prefetch_factor": 2, "pin_memory": False}
    assert loaders["training"] == {**training, "persistent_workers": False}
    assert loaders["positional"]["batch_size"] == 8 and loaders["positional"]["num_workers"] == 1
    assert loaders["validation"]["batch_size"] == 16 and loaders["validation"]["pin_memory"] is False
    small = {"batch_size": 2, "num_workers": 0, "prefetch_factor": None, "pin_memory": False}
    assert loaders["small"] == {**small, "persistent_workers": False}
    # torch's own samplers are what `shuffle` stands for.
    assert loaders["random"]["batch_size"] == 8 and loaders["in order"]["batch_size"] == 16
    # What the program decides by itself stays, and is told; so are errors of its own.
    assert loaders["batches"]["num_workers"] == 2
    assert loaders["sampler"]["batch_size"] == loaders["iterable"]["batch_size"] == 32
    assert loaders["sampler"]["num_workers"] == loaders["iterable"]["num_workers"] == 2
    notes = " ".join(run.notes_about("applied"))
    assert "num_workers 3 -> 1" in notes and "sampler" in notes, notes
    assert "loaders_of_all_kinds.py" in notes and "iterable" in notes, notes
    assert "refused: batch_size" in run.stderr
    assert "accumulate_grad_batches 4" in run.stderr


def test_everything_is_changed_where_the_user_wants_it(run_caulk, tmp_path):
    _, loaders = applied(run_caulk, tmp_path, "--apply-everywhere", workers=0)
    assert {name: loader["num_workers"] for name, loader in loaders.items()} == dict.fromkeys(loaders, 0)
    assert loaders["iterable"]["batch_size"] == 16 and loaders["training"]["persistent_workers"] is False


def test_ranks_are_left_alone(run_caulk, tmp_path):
    run, loaders = applied(run_caulk, tmp_path, WORLD_SIZE="2")
    assert loaders["training"]["num_workers"] == 3
    assert "rank" in " ".join(run.notes_about("applied"))


@pytest.mark.full
@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_loaders_of_a_framework_get_what_the_plan_says(run_caulk, tmp_path, framework):
    pytest.importorskip(framework)
    plan = tmp_path / "safe.yaml"
    plan.write_text(PLAN.format(workers=1))
    program = [sys.executable, str(PROGRAMS / "framework_loaders.py"), framework, str(tmp_path / "out")]
    run = run_caulk(program, options=["--no-heap", "--apply", str(plan)])
    assert run.code == 0, run.told()
    # Rows in the batches that came, and steps over 64 rows.
    assert json.loads(run.stdout.splitlines()[-1]) == {"training": 8, "validation": 16, "steps": 8}, run.told()
    told = run.notes_about("applied")
    assert len(told) == 2 and all("framework_loaders.py" in note and "workers" in note for note in told), run.told()
