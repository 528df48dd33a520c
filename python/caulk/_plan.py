"""What `caulk plan` asks of an interpreter with torch: what a model keeps and what lives at once, by batch.

The model is made and run on tensors without contents (`FakeTensorMode`): no memory is taken whatever the batch. It is one
that a function makes, or the one that a training has called before its first optimizer step. Run as a program of its own,
with the request as JSON in its only argument; the answer is the last line, after ``caulk:``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import runpy
import signal
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader

#: Batches that are tried at most: the largest, then each at most half of the one before.
BATCHES = 8


#: Operations of cuBLAS.
PRODUCTS = frozenset(f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "addmv", "dot"))


@dataclass
class Subject:
    """A model, and how it is called."""

    model: Any
    #: Positional and named arguments for a batch of so many samples.
    inputs: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]
    #: Bytes of one sample.
    sample: int
    batch: int
    #: Forward passes of one optimizer step.
    accumulation: int
    optimizer: str = ""
    mixed: bool = False
    #: What the batches come from, as it is set up; `None` where the training has no `DataLoader`.
    loader: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


class FirstStep(BaseException):
    """A training is about to make its first optimizer step; no handler for errors is to stop this."""


class Live(TorchDispatchMode):
    """What is allocated and freed, in order: bytes of a new storage, or minus the number of one that is gone, from 1.

    Workspaces that libraries take for the time of an operation stand beside the place in that order at which they are taken.
    """

    def __init__(self, cuda: Any) -> None:
        super().__init__()
        self.cuda = cuda
        self.events: list[int] = []
        self.workspaces: list[tuple[int, int]] = []
        self.products = False
        self._seen: dict[int, weakref.ref[Any]] = {}
        self._count = 0

    def begin(self) -> None:
        """Forgets everything so far; what was allocated before has no events."""
        self.events, self.workspaces, self._count = [], [], 0

    def recorded(self) -> dict[str, Any]:
        """The events since the beginning, the workspaces, and whether there was a product of matrices."""
        return {"events": [*self.events], "workspaces": [*self.workspaces], "products": self.products}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.products |= func._schema.name in PRODUCTS
        self.workspaces += ((len(self.events), size) for size in self.cuda.workspaces_of(func, args, result) if size)
        for each in tree_leaves(result):
            if isinstance(each, torch.Tensor):
                self._add(each.untyped_storage())
        return result

    def _add(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return
        self._count += 1
        number, events = self._count, self.events

        def gone(_: object) -> None:
            del self._seen[key]
            if events is self.events:
                events.append(-number)

        self._seen[key] = weakref.ref(storage, gone)
        events.append(size)


def beside(path: str) -> Any:
    """The module `_plan_cuda`, from its file: no folder of caulk's own is on the program's path."""
    spec = importlib.util.spec_from_file_location("caulk_plan_cuda", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_function(request: dict[str, Any], fake: FakeTensorMode) -> Subject:
    """The model that a function makes, with the input that was named."""
    kind = torch.long if request["whole"] else torch.float32
    shape = request["input"]

    def inputs(batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (torch.zeros(batch, *shape, dtype=kind),), {}

    sample = torch.Size(shape).numel() * kind.itemsize
    return Subject(make(request["model"], fake), inputs, sample, request["batch"], request["accumulation"])


def of_training(request: dict[str, Any], fake: FakeTensorMode) -> Subject:
    """The largest model that a training calls before its first optimizer step, with what it calls it with."""
    calls, optimizer, loader = run_to_first_step(request["words"], request["seconds"])
    if not calls:
        raise ValueError("the training calls no model before its first optimizer step")
    sizes = {call[0]: sum(each.numel() for each in call[0].parameters()) for call in calls}
    model, args, kwargs, mixed = max(calls, key=lambda call: sizes[call[0]])
    share = sizes[model] / sum(sizes.values())
    several = (
        f"of {len(sizes)} models that the training calls, the largest was counted: {share:.0%} of their parameters"
    )
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor) and each.dim()]
    if not tensors:
        raise ValueError("the training calls its model with no tensor")
    batch = len(tensors[0])

    def resized(each: Any, wanted: int) -> Any:
        if not isinstance(each, torch.Tensor):
            return each
        shape = (wanted, *each.shape[1:]) if each.dim() and len(each) == batch else each.shape
        return torch.zeros(shape, dtype=each.dtype)

    def inputs(wanted: int) -> Any:
        return tree_map(lambda each: resized(each, wanted), (args, kwargs))

    sample = sum(each.nbytes for each in tensors) // batch
    forwards = sum(call[0] is model for call in calls)
    with fake:
        notes = (several,) if len(sizes) > 1 else ()
        return Subject(emptied(model), inputs, sample, batch, forwards, optimizer, mixed, loader, notes)


def run_to_first_step(words: list[str], seconds: int) -> tuple[list[tuple[Any, ...]], str, dict[str, Any] | None]:
    """Calls of models that are trained, each with whether it was under autocast, what is to make the step, and the loader.

    Of several loaders that is the one that was gone through last.
    """
    calls: list[tuple[Any, ...]] = []
    call, inside = torch.nn.Module.__call__, False
    loader: dict[str, Any] | None = None
    iterate = DataLoader.__iter__

    def iterated(self: Any) -> Any:
        nonlocal loader
        loader = {name: getattr(self, name) for name in ("prefetch_factor", "pin_memory", "persistent_workers")}
        return iterate(self)

    def called(module: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside or not torch.is_grad_enabled():
            return call(module, *args, **kwargs)
        if module.training and any(each.requires_grad for each in module.parameters()):
            calls.append((module, args, kwargs, torch.is_autocast_enabled("cpu")))
        inside = True
        try:
            return call(module, *args, **kwargs)
        finally:
            inside = False

    def stepped(optimizer: Any, *_: Any) -> None:
        # Lightning hands the forward pass to the step: then it is over only after that.
        if calls:
            raise FirstStep(kind_of(optimizer))

    register_optimizer_step_pre_hook(stepped)
    register_optimizer_step_post_hook(stepped)
    torch.nn.Module.__call__, DataLoader.__iter__ = called, iterated
    # Whoever loads data for hours is ended by the signal.
    signal.alarm(seconds)
    try:
        run_as_main(words)
    except FirstStep as first:
        return calls, str(first), loader
    finally:
        signal.alarm(0)
        torch.nn.Module.__call__, DataLoader.__iter__ = call, iterate
    raise ValueError("the training made no optimizer step")


def run_as_main(words: list[str]) -> None:
    """Runs `file arguments` or `-m module arguments` as the interpreter would."""
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


def kind_of(optimizer: Any) -> str:
    """Its states: those of Adam, one moment, or none."""
    if isinstance(optimizer, torch.optim.SGD):
        return "momentum" if any(group["momentum"] for group in optimizer.param_groups) else "sgd"
    return "adam8bit" if "8bit" in type(optimizer).__name__ else "adam"


def batches(batch: int, accumulation: int) -> list[int]:
    """Divisors of the effective batch."""
    found: list[int] = []
    for each in range(batch, 0, -1):
        if batch * accumulation % each == 0 and (each == 1 or not found or each <= found[-1] // 2):
            found.append(each)
    return found[:BATCHES]


def make(place: str, fake: FakeTensorMode) -> Any:
    """The model that `module:name` gives: a class or function that is called without arguments, or a module."""
    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    model = found
    if not isinstance(model, torch.nn.Module):
        try:
            with fake:
                model = found()
        except Exception:
            # Made with contents, as by loading a checkpoint: its memory is taken once, and given back.
            model = found()
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"`{place}` gives a {type(model).__name__}, not a torch.nn.Module")
    with fake:
        return emptied(model)


def emptied(model: Any) -> Any:
    """The model with new tensors without contents in place of its own.

    Also where they were without contents before: views of copied ones do not share their storage.
    """
    made: dict[int, Any] = {}

    def empty(own: Any) -> Any:
        if id(own) not in made:
            new = torch.empty_strided(own.shape, own.stride(), dtype=own.dtype)
            is_parameter = isinstance(own, torch.nn.Parameter)
            # Whoever asks for the old one by number must not meet another.
            made[id(own)] = own, torch.nn.Parameter(new, own.requires_grad) if is_parameter else new
        return made[id(own)][1]

    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            tensors.update({name: empty(own) for name, own in tensors.items() if own is not None})
    return model


def checkpoint_blocks(model: Any) -> int:
    """Has blocks of which several stand in a row computed again in the backward pass; returns how many there are."""
    from torch.utils.checkpoint import checkpoint

    wrapped = 0
    inside: set[Any] = set()
    for parent in model.modules():
        children = [child for child in parent.children() if next(child.children(), None) is not None]
        kinds = Counter(type(child) for child in children)
        for child in children:
            if (
                kinds[type(child)] < 2
                or child in inside
                or isinstance(child, (torch.nn.ModuleList, torch.nn.Sequential))
            ):
                continue
            inside.update(child.modules())
            forward = child.forward

            def again(*args: Any, _forward: Any = forward, **kwargs: Any) -> Any:
                return checkpoint(_forward, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

            child.forward = again
            wrapped += 1
    return wrapped


def loss_of(output: Any) -> Any:
    """Something to start a backward pass from: cross entropy over the last dimension, which takes as much as usual losses."""
    tensors = [each for each in tree_leaves(output) if isinstance(each, torch.Tensor) and each.requires_grad]
    if not tensors:
        raise ValueError("the model's output depends on nothing that is trained")
    return sum(each.sum() if each.dim() < 2 else cross_entropy(each.float().flatten(0, -2)) for each in tensors)


def cross_entropy(scores: Any) -> Any:
    return torch.nn.functional.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))


def step(subject: Subject, live: Live, run: dict[str, Any]) -> dict[str, Any]:
    """One forward and backward pass from a model without gradients; what has no end in the events are its gradients."""
    model = subject.model
    own = {each.untyped_storage()._cdata for each in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            saved[storage._cdata] = storage.nbytes()
        return tensor

    model.zero_grad()
    live.begin()
    args, kwargs = subject.inputs(run["batch"])
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), live.cuda.as_on_cuda():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=run["mixed"]):
            output = model(*args, **kwargs)
        loss = loss_of(output)
    forward = len(live.events)
    # A loop over batches has names for input, output and loss until the next one.
    loss.backward()
    del output, args, kwargs, loss
    return {**run, "saved": sum(saved.values()), "forward": forward, **live.recorded()}


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that was asked for."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    subject = (of_training if "words" in request else of_function)(request, fake)
    model = subject.model.train()
    parameters = list(model.parameters())
    size = sum(each.numel() * each.element_size() for each in (*parameters, *model.buffers()))
    trained = [each for each in parameters if each.requires_grad]
    answer = {
        "name": type(model).__name__,
        "parameters": sum(each.numel() for each in parameters),
        "model_bytes": size,
        "gradient_bytes": sum(each.numel() * each.element_size() for each in trained),
        "tensors": [each.numel() * each.element_size() for each in (*parameters, *model.buffers())],
        "trained": [each.numel() * each.element_size() for each in trained],
        "sample_bytes": subject.sample,
        "batch_norm": any(isinstance(each, torch.nn.modules.batchnorm._BatchNorm) for each in model.modules()),
        "conv3d": any(isinstance(each, torch.nn.Conv3d) for each in model.modules()),
        "training": {
            "batch": subject.batch,
            "accumulation": subject.accumulation,
            "optimizer": subject.optimizer,
            "mixed": subject.mixed,
            "loader": subject.loader,
        },
        "runs": [],
        "notes": [*subject.notes],
    }
    # Those with checkpointing come last: it cannot be taken back.
    modes = sorted(request["modes"], key=lambda mode: mode["checkpointing"])
    runs = [{"batch": batch, **mode} for mode in modes for batch in batches(subject.batch, subject.accumulation)]
    checkpointed = False
    with fake, Live(beside(request["cuda"])) as live:
        for first, run in enumerate(runs):
            if run["checkpointing"] and not checkpointed:
                checkpointed = True
                if not checkpoint_blocks(model):
                    answer["notes"].append("no blocks in a row: gradient checkpointing was not tried")
                    break
            if not first:
                step(subject, live, run)
            answer["runs"].append(step(subject, live, run))
    if any(run["mixed"] for run in runs):
        answer["notes"].append("16 bit was counted by the CPU's rules for autocast")
    return answer


if __name__ == "__main__":
    torch.set_num_threads(1)
    try:
        print("\ncaulk:" + json.dumps(trace(json.loads(sys.argv[1]))))
    except Exception as error:
        text = str(error).split("\n")[0]
        print("\ncaulk:" + json.dumps({"error": f"{type(error).__name__}: {text}"}))
