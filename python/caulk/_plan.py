"""What `caulk plan --model` asks of an interpreter with torch: what a model keeps and what lives at once, by batch.

The model is made and run on tensors without contents (`FakeTensorMode`): no memory is taken whatever the batch. Run as a
program of its own, with the request as JSON in its only argument; the answer is the last line, after ``caulk:``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import weakref
from collections import Counter
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Live(TorchDispatchMode):
    """Bytes of all storages that are alive, and the most there have been."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.peak = 0
        self._seen: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            if isinstance(each, torch.Tensor):
                self._add(each.untyped_storage())
        return result

    def _add(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return

        def gone(_: object) -> None:
            del self._seen[key]
            self.bytes -= size

        self._seen[key] = weakref.ref(storage, gone)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)


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
    """Something to start a backward pass from; as usual losses do, it keeps one more copy of what it is made of."""
    tensors = [each for each in tree_leaves(output) if isinstance(each, torch.Tensor) and each.requires_grad]
    if not tensors:
        raise ValueError("the model's output depends on nothing that is trained")
    return sum(each.float().flatten(1).log_softmax(-1).mean() if each.dim() > 1 else each.sum() for each in tensors)


def step(model: Any, live: Live, request: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """One forward and backward pass that adds to gradients that are there already."""
    own = {each.untyped_storage()._cdata for each in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            saved[storage._cdata] = storage.nbytes()
        return tensor

    kind = torch.long if request["whole"] else torch.float32
    before = live.bytes
    live.peak = before
    inputs = torch.zeros(run["batch"], *request["input"], dtype=kind)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=run["mixed"]):
            output = model(inputs)
        loss = loss_of(output)
    del output, inputs
    loss.backward()
    return {**run, "saved": sum(saved.values()), "peak": live.peak - before}


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that was asked for."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    model = make(request["model"], fake).train()
    parameters = list(model.parameters())
    size = sum(each.numel() * each.element_size() for each in (*parameters, *model.buffers()))
    trained = [each for each in parameters if each.requires_grad]
    answer = {
        "name": type(model).__name__,
        "parameters": sum(each.numel() for each in parameters),
        "model_bytes": size,
        "gradient_bytes": sum(each.numel() * each.element_size() for each in trained),
        "sample_bytes": torch.Size(request["input"]).numel() * (8 if request["whole"] else 4),
        "batch_norm": any(isinstance(each, torch.nn.modules.batchnorm._BatchNorm) for each in model.modules()),
        "conv3d": any(isinstance(each, torch.nn.Conv3d) for each in model.modules()),
        "runs": [],
        "notes": [],
    }
    # Those with checkpointing come last: it cannot be taken back.
    runs = sorted(request["runs"], key=lambda run: run["checkpointing"])
    checkpointed = False
    with fake, Live() as live:
        for first, run in enumerate(runs):
            if run["checkpointing"] and not checkpointed:
                checkpointed = True
                if not checkpoint_blocks(model):
                    answer["notes"].append("no blocks in a row: gradient checkpointing was not tried")
                    break
            if not first:
                step(model, live, request, run)
            answer["runs"].append(step(model, live, request, run))
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
