"""`caulk plan` against torch: what is predicted is what a real step on the CPU keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest
from harness import CAULK, PROGRAMS, program_environment

torch = pytest.importorskip("torch")

#: The models of the programs, described by their layers.
CNN = """
name = "cnn"
layers = [
    { conv = { out = 32, kernel = 3 } }, "batch-norm", "relu", { max-pool = { kernel = 2 } },
    { conv = { out = 64, kernel = 3 } }, "batch-norm", "relu", { max-pool = { kernel = 2 } },
    { conv = { out = 128, kernel = 3 } }, "batch-norm", "relu", { max-pool = { kernel = 2 } },
    "global-pool", { linear = { out = 10 } },
]
[input]
channels = 3
size = 64
"""
CLIPS = """
name = "clips"
layers = [
    { conv = { out = 16, kernel = 3, bias = true } }, "batch-norm", "relu", { max-pool = { kernel = 2 } },
    { conv = { out = 32, kernel = 3, bias = true } }, "relu", "global-pool", { linear = { out = 10 } },
]
[input]
channels = 3
frames = 8
size = 32
"""
TRANSFORMER = """
name = "transformer"
layers = [
    { embedding = { count = 1000, size = 128 } },
    { block = { times = 4, layers = [
        { residual = { layers = ["layer-norm", { attention = { heads = 4 } }] } },
        { residual = { layers = ["layer-norm", { linear = { out = 512 } }, "relu", { linear = { out = 128 } }] } },
    ] } },
    { linear = { out = 100 } },
]
[input]
shape = [64]
"""
BATCH = 16


def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the real command where the models are."""
    command = [str(CAULK), "plan", *arguments, "--python", sys.executable]
    environment = program_environment()
    return subprocess.run(command, cwd=PROGRAMS, env=environment, capture_output=True, text=True, timeout=300)


def predicted(*arguments: str) -> dict:
    """Parts of GPU memory before anything is changed, with the rest of the answer."""
    ended = plan(*arguments, "--batch", str(BATCH), "--vram", "8GB", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    parts = {part["name"]: part["bytes"] for part in document["before"]["memory"]["gpu"]}
    return {**document, "parts": parts}


@dataclass(frozen=True)
class Real:
    """What a real step on the CPU holds, in bytes."""

    kept: int
    peak: int
    parameters: int


def real_step(name: str, inputs: torch.Tensor) -> Real:
    """Counts what a forward pass keeps, each storage once, and the most that a step adds to what was there before it."""
    sys.path.insert(0, str(PROGRAMS))
    try:
        import plan_models
    finally:
        sys.path.pop(0)
    model = getattr(plan_models, name)()
    own = {each.untyped_storage().data_ptr() for each in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    def step() -> None:
        scores = model(inputs.clone())
        scores.flatten(0, -2).log_softmax(-1).mean().backward()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        step()
    kind = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind], profile_memory=True, acc_events=True) as seen:
        step()
    events = seen.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return Real(sum(saved.values()), max(accumulate(sizes)), sum(each.numel() * 4 for each in model.parameters()))


MODELS = [
    ("Cnn", "3x64x64", CNN, torch.zeros(BATCH, 3, 64, 64)),
    ("Clips", "3x8x32x32", CLIPS, torch.zeros(BATCH, 3, 8, 32, 32)),
    ("Transformer", "i64", TRANSFORMER, torch.zeros(BATCH, 64, dtype=torch.long)),
]


@pytest.mark.parametrize(("name", "shape", "layers", "inputs"), MODELS, ids=["cnn", "clips", "transformer"])
def test_predictions_hold_what_torch_keeps(name, shape, layers, inputs, tmp_path):
    real = real_step(name, inputs)
    config = tmp_path / "model.toml"
    config.write_text(layers)
    traced = predicted("--model", f"plan_models:{name}", "--input", shape)
    computed = predicted("--config", str(config))
    assert "16 bit was counted by the CPU's rules for autocast" in traced["notes"]
    for found in (traced, computed):
        keeps, passing = found["parts"]["kept for backward"], found["parts"]["passing tensors"]
        # What the loss keeps is the trace's alone: files of layers end before it.
        loss = BATCH * inputs.shape[1] * 100 * 4 if name == "Transformer" and found is computed else 0
        assert found["parts"]["gradients"]["likely"] == real.parameters
        assert keeps["low"] * 0.99 <= real.kept - loss <= keeps["high"] * 1.01, (real, keeps)
        assert abs(keeps["likely"] - (real.kept - loss)) < 0.03 * real.kept, (real, keeps)
        low, high = keeps["low"] + passing["low"], keeps["high"] + passing["high"]
        assert low * 0.99 <= real.peak - loss <= high * 1.01, (real, keeps, passing)


def test_a_model_that_needs_less_is_planned_with_what_was_traced():
    ended = plan(
        "--model", "plan_models:Transformer", "--input", "i64", "--batch", "256", "--vram", "1GB", "--format", "json"
    )
    document = json.loads(ended.stdout)
    training = document["training"]
    assert ended.returncode == 0 and document["fits"]["gpu"], ended.stdout
    assert training["batch_size"] * training["accumulate_grad_batches"] == 256
    assert training["batch_size"] < 256 or training["gradient_checkpointing"] or training["precision"] != "32-true"


def test_models_that_cannot_be_run_say_why():
    for name, text in [("nothing", "no attribute"), ("reads_values", "cannot be run without memory")]:
        ended = plan("--model", f"plan_models:{name}", "--input", "8", "--vram", "4GB")
        assert ended.returncode == 125 and text in ended.stderr, ended.stderr
    ended = plan("--model", "no_such_module:name", "--input", "8", "--vram", "4GB")
    assert ended.returncode == 125 and "no_such_module" in ended.stderr


def test_a_helper_that_is_no_program_of_the_user_s_leaves_nothing():
    before = sorted(Path(PROGRAMS).iterdir())
    plan("--model", "plan_models:Cnn", "--input", "3x8x8", "--batch", "1", "--vram", "4GB")
    assert sorted(Path(PROGRAMS).iterdir()) == before


def test_a_training_is_run_for_some_steps_and_measured(tmp_path):
    plan_file = tmp_path / "safe.json"
    program = [sys.executable, str(PROGRAMS / "worker_crops.py"), "fork", "persistent"]
    arguments = ["--ram", "64GB", "--steps", "5", "--seconds", "120", "--format", "json", "--output", str(plan_file)]
    command = [str(CAULK), "plan", *arguments, "--", *program]
    ended = subprocess.run(command, env=program_environment(), capture_output=True, text=True, timeout=300)
    document = json.loads(ended.stdout)
    seen = document["measured"]
    assert ended.returncode == 0 and document["basis"] == "measured", ended.stderr
    assert seen["training"] > 100 << 20 and seen["workers"] >= 1, seen
    assert document["loader"]["num_workers"] == seen["workers"]
    assert json.loads(plan_file.read_text()) == document


#: A training that sums gradients of two batches, and the same in a trainer that hands the forward pass to the step.
TRAINING = """
import torch
from plan_models import Cnn
model = Cnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loader = torch.utils.data.DataLoader(torch.randn(64, 3, 64, 64), batch_size=8)
for epoch in range(3):
    for number, images in enumerate(loader):
        {step}
"""
STEPS = {
    "plain": """
        model(images).sum().backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
""",
    "closure": """
        def closure():
            for part in images.split(4):
                loss = model(part).sum()
                loss.backward()
            return loss
        optimizer.step(closure)
""",
}


@pytest.mark.parametrize(("step", "batch"), [("plain", 8), ("closure", 4)])
def test_the_model_of_a_training_is_planned_for_a_gpu_that_is_not_here(tmp_path, step, batch):
    program = tmp_path / "train.py"
    program.write_text(TRAINING.format(step=STEPS[step].strip()))
    environment = program_environment(PYTHONPATH=str(PROGRAMS))
    command = [
        str(CAULK),
        "plan",
        "--vram",
        "4GB",
        "--steps",
        "3",
        "--format",
        "json",
        "--",
        sys.executable,
        str(program),
    ]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    settings = document["before"]["settings"]
    assert (settings["batch"], settings["accumulation"], settings["optimizer"]) == (batch, 2, "momentum"), settings
    # As the training's own loader is.
    assert (settings["workers"], settings["pin_memory"], settings["persistent_workers"]) == (0, False, False), settings
    assert document["loader"]["num_workers"] == 0, document["loader"]
    options = ("--model", "plan_models:Cnn", "--input", "3x64x64", "--batch", str(batch), "--vram", "4GB")
    alone = json.loads(plan(*options, "--format", "json").stdout)
    keeps = [
        next(part["bytes"] for part in found["before"]["memory"]["gpu"] if part["name"] == "kept for backward")
        for found in (document, alone)
    ]
    assert keeps[0] == keeps[1], keeps
    assert {part["name"] for part in document["before"]["memory"]["host"]} == {"training process", "workers"}


#: A training that gets its batches from no loader, on its own and beside a pool of processes.
NO_LOADER = """
import torch
from plan_models import Cnn
model = Cnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(30):
    model(torch.randn(8, 3, 64, 64)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("machine", [("--ram", "64GB"), ("--vram", "1GB", "--ram", "64GB")])
def test_nothing_is_said_of_a_loader_that_a_program_does_not_have(tmp_path, machine):
    program = tmp_path / "train.py"
    program.write_text(NO_LOADER)
    plan_file = tmp_path / "safe.yaml"
    environment = program_environment(PYTHONPATH=str(PROGRAMS))
    options = ["--steps", "3", "--format", "json", "--output", str(plan_file), *machine]
    command = [str(CAULK), "plan", *options, "--", sys.executable, str(program)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert set(document["loader"].values()) == {None} and set(document["validation"].values()) == {None}, document
    loaders = {"num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "validation_batch_size"}
    said = {change["setting"] for name in ("changes", "advice") for change in document.get(name, [])}
    assert not said & loaders, said
    text = plan_file.read_text()
    assert not any(name in text for name in loaders), text
    applied = [str(CAULK), "run", "--output", str(tmp_path / "run"), "--apply", str(plan_file)]
    ended = subprocess.run(
        [*applied, "--", sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0 and "plan for the DataLoader" not in ended.stderr, ended.stderr


def test_a_command_that_is_no_python_program_leaves_the_gpu_out(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(TRAINING.format(step=STEPS["plain"].strip()))
    environment = program_environment(PYTHONPATH=str(PROGRAMS))
    command = [str(CAULK), "plan", "--vram", "4GB", "--steps", "3", "--", "sh", "-c", f"{sys.executable} {program}"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and "neither `python FILE`" in ended.stderr, ended.stderr
    assert "It fits on the host as it is" in ended.stdout and "GPU" not in ended.stdout
