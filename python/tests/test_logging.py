"""Lines that callbacks and `log_memory_stats` say, with logging set up in every way, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from harness import program_environment

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

import caulk

SAYS = """
import logging, sys
import caulk
{setup}
watch = caulk.Watch(caulk.WatchOptions(host_growth=1))
watch.begin()
watch.end_epoch()
held = bytearray(64 * 1024**2)
watch.end_epoch()
caulk.log_memory_stats("here")
logging.getLogger("own").setLevel(logging.INFO)
caulk.log_memory_stats("there", logger=logging.getLogger("own"))
"""


def said(setup: str = "", **variables: str) -> list[str]:
    """Lines on standard error; nothing goes to standard output."""
    package = os.path.dirname(os.path.dirname(caulk.__file__))
    environment = program_environment(PYTHONPATH=package, **variables)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
        if name not in variables:
            environment.pop(name, None)
    command = [sys.executable, "-c", SAYS.format(setup=setup)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and not ended.stdout, (ended.stdout, ended.stderr)
    return ended.stderr.splitlines()


def test_without_logging_each_line_is_shown_once():
    lines = said()
    wanted = ["caulk: training begins", "caulk: epoch 1: ", "caulk: epoch 2: ", "caulk: warning: host memory has grown"]
    assert len(lines) == 6, lines
    for line, start in zip(lines, [*wanted, "caulk: here: ", "caulk: there: "]):
        assert line.startswith(start), lines


def test_what_is_set_up_shows_them_instead():
    lines = said("logging.basicConfig(level=logging.INFO, format='%(levelname)s/%(name)s/%(funcName)s/%(message)s')")
    assert len(lines) == 6, lines
    assert lines[0].startswith("INFO/caulk/begin/training begins: "), lines
    assert lines[3].startswith("WARNING/caulk/") and lines[4].startswith("INFO/caulk/log_memory_stats/here: "), lines


def test_logging_that_is_set_up_later_is_not_doubled():
    late = "caulk.log_memory_stats('early'); logging.basicConfig(level=logging.INFO, format='own %(message)s')"
    lines = said(late)
    assert lines[0].startswith("caulk: early: ") and all(line.startswith("own ") for line in lines[1:]), lines
    assert len(lines) == 7, lines


@pytest.mark.parametrize(
    ("setup", "shown"),
    [
        # Python's own default for those who set up no level.
        ("logging.basicConfig()", ["WARNING:caulk:host", "INFO:own:there: "]),
        ("logging.getLogger('caulk').setLevel(logging.WARNING)", ["caulk: warning: ho", "caulk: there: "]),
        ("logging.getLogger('caulk').setLevel(logging.CRITICAL)", ["caulk: there: "]),
        ("logging.getLogger().setLevel(logging.ERROR)", ["caulk: there: "]),
        ("logging.disable(logging.WARNING)", []),
        ("logging.disable(logging.INFO)", ["caulk: warning: ho"]),
        ("logging.getLogger('caulk').addHandler(logging.NullHandler())", ["caulk: there: "]),
        (
            "logging.getLogger('caulk').addFilter(lambda record: 'grown' in record.msg)",
            ["caulk: warning: ho", "caulk: there: "],
        ),
        ("logging.getLogger('caulk').disabled = True", ["caulk: there: "]),
        ("logging.getLogger('caulk').propagate = False", ["host memory has gr", "caulk: there: "]),
        ("logging.lastResort = None", ["No handlers could "]),
        ("sys.stderr = None", []),
    ],
)
def test_what_the_program_says_of_logging_counts(setup, shown):
    lines = said(setup)
    assert len(lines) == len(shown) and all(map(str.startswith, lines, shown)), lines


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "SLURM_PROCID"])
def test_of_several_processes_the_first_says_it_and_each_warns(name):
    lines = said(**{name: "3"})
    assert len(lines) == 1 and lines[0].startswith("caulk [rank 3]: warning: host memory has grown"), lines
    assert len(said(**{name: "0"})) == 6
    assert len(said("logging.basicConfig(level=logging.INFO)", **{name: "3"})) == 6


def test_a_rank_that_torch_knows_counts():
    pytest.importorskip("torch")
    joins = "import torch.distributed as d; d.init_process_group('gloo', rank=0, world_size=1, store=d.HashStore())"
    assert len(said(joins, RANK="3")) == 6


#: Trainings whose callback is all that says anything, by framework.
TRAININGS = {
    "ignite": """
from caulk.ignite import LeakHandler
from ignite.engine import Engine
trainer, evaluator = Engine(lambda *_: None), Engine(lambda *_: None)
LeakHandler().attach(trainer, [evaluator])
for _ in range(2):
    trainer.run([1, 2], max_epochs=1)
    evaluator.run([1])
""",
    "lightning.pytorch": """
import torch
from lightning.pytorch import LightningModule, Trainer
from caulk.lightning import LeakCallback
class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        return self.layer(batch).sum()
    def validation_step(self, batch, _):
        pass
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.zeros(4, 4))
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
Trainer(max_epochs=2, callbacks=[LeakCallback()], accelerator="cpu", **quiet).fit(Module(), loader, loader)
""",
    "transformers": """
from types import SimpleNamespace
from caulk.transformers import LeakCallback
from transformers.trainer_callback import CallbackHandler
handler = CallbackHandler([LeakCallback()], None, None, None, None)
state = SimpleNamespace(log_history=[], epoch=1.0, global_step=1)
for event in ("train_begin", "step_end", "epoch_end", "evaluate", "epoch_end", "evaluate", "train_end"):
    handler.call_event(f"on_{event}", None, state, None)
""",
    "accelerate": """
from accelerate import Accelerator
from caulk.accelerate import LeakWatch
watch = LeakWatch(Accelerator(cpu=True))
watch.begin()
for _ in range(2):
    watch.step()
    watch.end_validation()
    watch.end_epoch()
watch.end()
""",
}


@pytest.mark.parametrize("framework", TRAININGS)
def test_callbacks_are_seen_without_logging(framework, tmp_path):
    pytest.importorskip(framework)
    package = os.path.dirname(os.path.dirname(caulk.__file__))
    environment = program_environment(PYTHONPATH=os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
    for setup, start in [("", "caulk: "), ("import logging; logging.basicConfig(level=20)", "INFO:caulk:")]:
        command = [sys.executable, "-c", setup + TRAININGS[framework]]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stderr
        for text, times in [("training begins", 2), ("epoch ", 2), ("after validation", 2), ("training ends", 2)]:
            found = sum(line.startswith(start + text) for line in ended.stderr.splitlines())
            assert 1 <= found <= times, (text, ended.stderr)
            assert ended.stderr.count(text) == found or text == "epoch ", ended.stderr
