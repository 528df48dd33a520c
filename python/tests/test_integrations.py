"""What the integrations do under the real libraries."""

from __future__ import annotations

import doctest
import importlib
import logging
import math
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")
torch = pytest.importorskip("torch")

import caulk  # noqa: E402
from caulk import _watch  # noqa: E402

pytest_plugins = ["pytester"]
MIB = 1024**2


def a_loader():
    inputs = torch.randn(16, 4)
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4
    )


def test_a_watch_warns_once_of_growth_and_of_slow_steps(monkeypatch, caplog):
    now = 0.0
    monkeypatch.setattr(_watch.time, "monotonic", lambda: now)
    watch = caulk.Watch(caulk.WatchOptions(host_growth=64 * MIB))
    watch.begin()
    held = []
    for epoch in range(4):
        for step in range(20):
            now += 0.5 if epoch == 3 and step > 10 else 0.1
            watch.step()
        watch.end_epoch()
        held.append(bytearray(48 * MIB))
    watch.end()
    grown, slow = sorted(watch.warnings)
    assert "host memory has grown by" in grown and "caulk run" in grown, watch.warnings
    assert "5.0 times as long" in slow
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 2


def test_time_between_epochs_makes_no_step_slow(monkeypatch):
    now = 0.0
    monkeypatch.setattr(_watch.time, "monotonic", lambda: now)
    watch = caulk.Watch()
    watch.begin()
    for _ in range(40):
        for _ in range(2):
            now += 0.1
            watch.step()
        now += 100.0
        watch.end_validation()
    assert not watch.warnings


def test_absurd_options_are_refused():
    for options in ({"host_growth": 0}, {"gpu_share": 1.5}, {"slow_factor": 1}):
        with pytest.raises(ValueError, match="must be positive"):
            caulk.WatchOptions(**options)


def test_plots_are_drawn_once_from_the_last_data():
    drawn = []
    plots = caulk.PlotAtEnd(lambda name, data: drawn.append((name, data)))
    weight = torch.ones(2, requires_grad=True)
    for epoch in range(5):
        plots.keep("curve", weight * epoch)
    plots.draw_all()
    plots.draw_all()
    ((name, data),) = drawn
    assert name == "curve" and data.grad_fn is None and data.tolist() == [4.0, 4.0]


@pytest.mark.full
@pytest.mark.parametrize(
    ("framework", "library"),
    [
        ("lightning", "lightning.pytorch"),
        ("transformers", "transformers"),
        ("accelerate", "accelerate"),
        ("ignite", "ignite"),
    ],
)
def test_examples_of_integrations_run(framework, library):
    pytest.importorskip(library)
    failed, tried = doctest.testmod(importlib.import_module(f"caulk.{framework}"))
    assert tried and not failed


def test_lightning(tmp_path, caplog):
    lightning = pytest.importorskip("lightning.pytorch")
    from caulk.lightning import LeakCallback, PlotCallback
    from lightning.pytorch.loggers import CSVLogger

    drawn = []
    plots = PlotCallback(lambda name, data: drawn.append((name, data)))

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, _):
            plots.plots.keep("residuals", self.layer(batch[0]) - batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    logger = CSVLogger(tmp_path)
    callback = LeakCallback()
    trainer = lightning.Trainer(
        max_epochs=3,
        callbacks=[callback, plots],
        logger=logger,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    with caplog.at_level(logging.INFO, "caulk"):
        trainer.fit(Module(), a_loader(), a_loader())
    said = [record.message for record in caplog.records if record.name == "caulk"]
    assert sum(text.startswith("epoch ") for text in said) == 3
    # The sanity check is no validation.
    assert sum(text.startswith("after validation") for text in said) == 3
    assert said[-1].startswith("training ends after 12 steps")
    logger.save()
    assert "memory/rss" in Path(logger.log_dir, "metrics.csv").read_text().splitlines()[0]
    assert len(drawn) == 1 and drawn[0][0] == "residuals"


@pytest.mark.full
def test_transformers(tmp_path, caplog):
    transformers = pytest.importorskip("transformers")
    from caulk.transformers import LeakCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            out = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    rows = [{"x": torch.randn(4), "labels": torch.ones(1)} for _ in range(16)]
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        num_train_epochs=2,
        per_device_train_batch_size=4,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    callback = LeakCallback()
    trainer = transformers.Trainer(Model(), arguments, train_dataset=rows, eval_dataset=rows, callbacks=[callback])
    with caplog.at_level(logging.INFO, "caulk"):
        trainer.train()
    said = [record.message for record in caplog.records if record.name == "caulk"]
    assert sum(text.startswith("epoch ") for text in said) == 2
    assert sum(text.startswith("after validation") for text in said) == 2
    assert any("memory/rss" in entry for entry in trainer.state.log_history)


@pytest.mark.full
def test_accelerate(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    from accelerate.tracking import GeneralTracker
    from caulk.accelerate import LeakWatch

    logged = []

    class Tracker(GeneralTracker):
        name = "lines"
        requires_logging_directory = False
        tracker = None

        def store_init_configuration(self, values):
            pass

        def log(self, values, step, **_):
            logged.append((step, values))

    accelerator = accelerate.Accelerator(cpu=True, log_with=Tracker())
    accelerator.init_trackers("run")
    model = torch.nn.Linear(4, 1)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), a_loader())
    watch = LeakWatch(accelerator)
    watch.begin()
    for _ in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.mse_loss(model(inputs), targets))
            optimizer.step()
            watch.step()
        watch.end_validation()
        watch.end_epoch()
    assert [step for step, _ in logged] == [4, 8] and logged[0][1]["memory/rss"] > 0


@pytest.mark.full
def test_ignite(caplog):
    pytest.importorskip("ignite")
    from caulk.ignite import LeakHandler
    from ignite.engine import Engine

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def update(_, batch):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer, evaluator = Engine(update), Engine(lambda _, batch: float(model(batch[0]).sum()))
    LeakHandler().attach(trainer, [evaluator])
    from ignite.engine import Events

    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda _: evaluator.run(a_loader()))
    with caplog.at_level(logging.INFO, "caulk"):
        trainer.run(a_loader(), max_epochs=2)
    said = [record.message for record in caplog.records if record.name == "caulk"]
    assert sum(text.startswith("epoch ") for text in said) == 2
    assert sum(text.startswith("after validation") for text in said) == 2
    assert trainer.state.metrics["memory/rss"] > 0


@pytest.mark.full
def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        watch = caulk.Watch(sinks=(caulk.to_tensorboard(writer),))
        watch.begin()
        for _ in range(2):
            watch.step()
            watch.end_epoch()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    scalars = events.Scalars("memory/rss")
    assert [scalar.step for scalar in scalars] == [1, 2] and scalars[0].value > MIB


@pytest.mark.full
def test_wandb(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="caulk", dir=tmp_path) as run:
        watch = caulk.Watch(sinks=(caulk.to_wandb(run),))
        watch.begin()
        watch.step()
        watch.end_epoch()
        assert run.summary["memory/rss"] > MIB and run.summary["memory/step"] == 1
    assert list(tmp_path.rglob("*.wandb"))


@pytest.mark.full
def test_notebook_magics(capsys):
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "caulk")
    shell.run_line_magic("caulk", "")
    assert "resident" in capsys.readouterr().out
    shell.run_cell("kept = []")
    shell.run_cell_magic("caulk", "", "for _ in range(8): kept.append(bytearray(1024**2))")
    said = capsys.readouterr().out
    assert "more are in use than before" in said and "kept" in said, said
    shell.run_cell_magic("caulk", "", "rows = [1, 2]")
    assert "more in use than before" in capsys.readouterr().out
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("caulk", "", "1 / 0")


LEAKING = """
import pytest
kept = []

@pytest.mark.leakfree(steps=3)
def test_leaks():
    kept.append(bytearray(1024**2))

@pytest.mark.leakfree
def test_is_clean():
    rows = [bytearray(1024**2)]

@pytest.fixture
def size():
    return 10

@pytest.mark.leakfree(steps=2, min_bytes=100 * 1024**2)
def test_leaks_little(size):
    kept.append(bytearray(size))

@pytest.mark.leakfree(steps=0)
def test_absurd():
    pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_marked_test_fails_where_it_leaks(pytester, workers):
    pytester.makepyfile(LEAKING)
    result = pytester.runpytest_subprocess("--caulk", "--strict-markers", "--numprocesses", workers, *plugin())
    result.assert_outcomes(passed=2, failed=2)
    text = result.stdout.str()
    assert "over 3 more runs of the test, 3." in text and "`test_a_marked_test_fails_where_it_leaks.kept`" in text, text
    assert "grown at" in text and "kept.append(bytearray(1024**2))" in text
    assert "memory left in use by each test" in text and "leakfree needs at least one step" in text


@pytest.mark.parametrize("ci", ["", "true"])
@pytest.mark.parametrize("options", [("--junit-xml=told.xml",), ("-vv", "--numprocesses=1"), ("--tb=no", "-vv")])
def test_a_leak_is_told_once(pytester, monkeypatch, ci, options):
    # pytest takes an empty one for none, and repeats a failure's text in its summary where one is set.
    monkeypatch.setenv("CI", ci)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    pytester.makepyfile(
        "import pytest\nkept = []\n@pytest.mark.leakfree\ndef test_leaks(): kept.append(bytearray(1024**2))"
    )
    result = pytester.runpytest_subprocess(*options, *plugin())
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    told = [text.count(part) for part in ("grown at", ".kept` (list) grew from", "During handling")]
    assert told == [1, 1, 0], text
    assert "::test_leaks - Failed: over 5 more runs of" in text, text
    if "--junit-xml=told.xml" in options:
        assert (pytester.path / "told.xml").read_text().count("grown at") == 1


def plugin():
    """Names the plugin where caulk is on the path but not installed."""
    known = subprocess.run([sys.executable, "-m", "pytest", "--markers"], capture_output=True, text=True).stdout
    return () if "leakfree" in known else ("-p", "caulk._pytest")


def test_statistics_of_nothing_are_no_numbers():
    assert math.isnan(caulk.BoundedHistory(1).statistics.mean)
