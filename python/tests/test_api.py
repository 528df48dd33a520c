"""What `import caulk` gives inside a program."""

from __future__ import annotations

import dataclasses
import doctest
import functools
import gc
import importlib
import json
import logging
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from pathlib import Path

import pytest

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")
torch = pytest.importorskip("torch")

import caulk  # noqa: E402

MIB = 1024**2
HELD: list[object] = []


@pytest.mark.parametrize("home", ["", *caulk._HOMES])
def test_examples_in_the_documentation_run(home, monkeypatch):
    monkeypatch.setattr(caulk, "_savers", [])
    failed, tried = doctest.testmod(importlib.import_module(f"caulk.{home}".rstrip(".")))
    assert not failed
    assert tried or home == "_growlines"


def test_whatever_can_be_called_has_an_example():
    public = {name: getattr(caulk, name) for name in caulk.__all__}
    # Results have their fields told; they come out of the examples of what makes them.
    results = {
        name for name, value in public.items() if isinstance(value, type) and issubclass(value, tuple | Exception)
    }
    data = {name for name, value in public.items() if dataclasses.is_dataclass(value)}
    called = public.keys() - results - data
    assert not [name for name in called if ">>>" not in (public[name].__doc__ or "")]


def test_every_public_name_is_there():
    for name in caulk.__all__:
        assert getattr(caulk, name) is not None
    assert set(caulk.__all__) <= set(dir(caulk))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = caulk.nothing


def test_importing_caulk_loads_nothing_and_no_function_loads_torch():
    program = """
import sys
before = set(sys.modules)
import caulk
assert set(sys.modules) - before == {"caulk"}, set(sys.modules) - before
with caulk.memory_managed_context():
    caulk.log_memory_stats("now", detailed=True)
caulk.detach_to_cpu([1]), caulk.clear_caches(sys), caulk.BoundedHistory(1).append(2), caulk.clear_gpu_memory()
with caulk.leak_check():
    caulk.no_grad_guard(len)([])
tracker = caulk.MemoryTracker()
tracker.step()
print(tracker.report())
assert "torch" not in sys.modules and "numpy" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_usage_follows_what_the_process_holds():
    before = caulk.get_memory_usage(pss=True)
    held = bytearray(64 * MIB)
    after = caulk.get_memory_usage(pss=True)
    del held
    assert 60 * MIB < after.rss - before.rss < 70 * MIB
    assert after.pss is not None and before.pss is not None and after.pss - before.pss > 60 * MIB
    assert after.vms > after.rss > after.pss > 0
    assert str(after).startswith(caulk.format_bytes(after.rss))


def test_what_a_managed_block_left_in_cycles_is_released_even_when_it_fails(caplog):
    class Node:
        pass

    with (
        caplog.at_level(logging.INFO, "caulk"),
        pytest.raises(KeyError),
        caulk.memory_managed_context("validation") as memory,
    ):
        gc.disable()
        try:
            for _ in range(20):
                node = Node()
                node.itself, node.payload = node, torch.ones(MIB)
            del node
            raise KeyError("the block's own")
        finally:
            gc.enable()
    assert memory.released.objects >= 20
    assert memory.after.rss - memory.before.rss < 40 * MIB
    assert "validation: released" in caplog.text


def test_passes_must_be_there():
    with pytest.raises(ValueError, match="at least one pass"):
        caulk.aggressive_gc(passes=0)


def test_a_function_under_the_guard_records_nothing():
    model = torch.nn.Linear(4, 4)
    parameter = next(model.parameters())

    @caulk.no_grad_guard
    def evaluate(given):
        return {"out": [model(given)], "given": given}

    kept = parameter * 2
    result = evaluate(kept)
    assert result["out"][0].grad_fn is None and result["given"] is kept

    @caulk.no_grad_guard
    def leaky():
        with torch.enable_grad():
            return [model(torch.ones(4))]

    with pytest.raises(RuntimeError, match=r"leaky returned a tensor with an autograd graph"):
        leaky()


Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Outputs:
    logits: torch.Tensor
    names: list[str]


def test_detaching_keeps_the_shape_of_a_tree():
    weight = torch.ones(3, requires_grad=True)
    large = torch.zeros(MIB)
    tree = {
        "outputs": Outputs(weight * 2, ["a"]),
        "pair": Pair(weight * 3, 1),
        "order": OrderedDict(x=weight * 4),
        "groups": defaultdict(list, {"k": [weight * 5]}),
        "view": large[:2],
        "leaf": weight,
        "text": "same",
    }
    copy = caulk.detach_to_cpu(tree)
    assert isinstance(copy["outputs"], Outputs) and copy["outputs"].names == ["a"]
    assert isinstance(copy["pair"], Pair) and isinstance(copy["order"], OrderedDict)
    assert isinstance(copy["groups"], defaultdict) and copy["groups"]["new"] == []
    for tensor in (
        copy["outputs"].logits,
        copy["pair"].first,
        copy["order"]["x"],
        copy["groups"]["k"][0],
        copy["leaf"],
    ):
        assert tensor.grad_fn is None and not tensor.requires_grad
    assert copy["view"].untyped_storage().nbytes() == copy["view"].nbytes
    assert copy["leaf"].data_ptr() != weight.data_ptr()
    assert tree["outputs"].logits.grad_fn is not None and copy["text"] == "same"


def test_a_history_keeps_its_newest_values_without_graphs_and_statistics_of_all():
    history = caulk.BoundedHistory(maxlen=3)
    weight = torch.ones((), requires_grad=True)
    for value in range(10):
        history.append(weight * value)
    assert list(history) == [7.0, 8.0, 9.0] and history[-1] == 9.0 and len(history) == history.maxlen == 3
    statistics = history.statistics
    assert (statistics.n, statistics.mean, statistics.min, statistics.max) == (10, 4.5, 0.0, 9.0)
    assert statistics.std == pytest.approx(8.25**0.5)
    history.append(torch.ones(2, requires_grad=True) * 2)
    assert history[-1].grad_fn is None and history.statistics.n == 10
    history.clear()
    assert not len(history) and history.statistics.n == 0
    with pytest.raises(ValueError, match="at least one"):
        caulk.BoundedHistory(0)


def test_a_collector_is_bounded():
    outputs = caulk.OutputCollector(max_items=2)
    weight = torch.ones(2, requires_grad=True)
    assert [outputs.append({"loss": weight * step}) for step in range(4)] == [True, True, False, False]
    assert outputs.dropped == 2 and all(output["loss"].grad_fn is None for output in outputs)
    outputs.clear()
    assert len(outputs) == outputs.dropped == 0


class Chain:
    def __init__(self):
        self.frames = torch.ones(MIB // 4)
        self.solutions = [torch.ones(8), "name"]
        self.table = {"a": [torch.ones(8)], "b": 1}
        self.count = 3

    @functools.cache  # noqa: B019
    def jacobian(self, joint):
        return torch.ones(joint)

    @staticmethod
    @functools.cache
    def rotation(angle):
        return torch.ones(angle)

    @functools.cached_property
    def limits(self):
        return torch.ones(2)


@functools.cache
def joints(count):
    return list(range(count))


def test_every_functools_cache_of_an_object_is_emptied():
    chain = Chain()
    for joint in range(1, 4):
        chain.jacobian(joint)
        chain.rotation(joint)
        joints(joint)
    _ = chain.limits
    assert caulk.clear_caches(chain) == 10
    assert Chain.jacobian.cache_info().currsize == joints.cache_info().currsize == 0
    assert "limits" not in vars(chain)
    joints(1)
    assert caulk.clear_caches(sys.modules[__name__]) == 1
    assert caulk.clear_caches(Chain) == 0


def test_tensors_of_an_object_are_dropped_and_nothing_else():
    chain = Chain()
    assert caulk.clear_tensors(chain) == MIB + 2 * 8 * 4
    assert chain.frames is None and chain.solutions == ["name"] and chain.table == {"b": 1} and chain.count == 3
    model = torch.nn.Linear(2, 2)
    model.kept = model(torch.ones(2))
    caulk.clear_tensors(model)
    assert model.kept is None and model.weight is not None


def test_a_census_counts_what_is_there():
    class Marked:
        pass

    kept = [Marked() for _ in range(500)]
    rows = {row.name: row for row in caulk.census().types}
    name = f"{__name__}.{Marked.__qualname__}"
    assert rows[name].objects == len(kept), sorted(rows)[:20]
    assert "objects; most bytes by type" in str(caulk.census())


class Trainer:
    def __init__(self):
        self.metrics = {"iou": []}


def test_holders_are_told_as_a_person_would_type_them():
    trainer = Trainer()
    target = object.__new__(Trainer)
    trainer.metrics["iou"].append(target)
    HELD.append(target)
    held = caulk.find_holders(target)
    HELD.clear()
    told = {holder.expression for holder in held}
    assert "trainer.metrics['iou'][0]" in told and any(text.endswith("HELD[0]") for text in told), told
    of_local = next(holder for holder in held if holder.expression.startswith("trainer"))
    assert of_local.function == "test_holders_are_told_as_a_person_would_type_them"
    assert Path(of_local.file) == Path(__file__) and "local trainer" in of_local.path


def test_queues_are_told_and_not_what_is_inside_of_them():
    import asyncio
    import multiprocessing
    import queue

    class Jobs(asyncio.Queue):
        pass

    waiting, jobs, sent = queue.Queue(), Jobs(), multiprocessing.get_context("spawn").Queue()
    for made, inside in ((waiting, waiting.queue), (jobs, jobs._queue), (sent, sent._buffer)):
        told = [holder.expression for holder in caulk.find_holders(inside)]
        assert any(text in ("waiting", "jobs", "sent") for text in told), (made, told)


def test_hooks_of_a_tensor_are_named_and_no_mode_is_asked():
    from torch.overrides import TorchFunctionMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            asked.append(function)
            return function(*args, **(kwargs or {}))

    def hook(gradient):
        return None

    weight, asked = torch.nn.Parameter(torch.ones(3)), []
    weight.register_hook(hook)
    with Functions():
        held = caulk.find_holders(hook)
    assert not asked, asked
    told = {holder.expression for holder in held}
    assert any(text.startswith("weight._backward_hooks[") for text in told), told


def test_what_a_tensor_keeps():
    weight = torch.ones(1000, requires_grad=True)
    loss = (weight * torch.ones(1000)).exp().sum()
    kept = caulk.retained(loss)
    assert kept.graph_nodes == 4 and kept.saved >= 4000 and "SumBackward0" in dict(kept.node_types)
    view = caulk.retained(torch.zeros(MIB)[:2])
    assert (view.shown, view.storage, view.graph_nodes) == (8, 4 * MIB, 0)
    with pytest.raises(TypeError, match=r"plain torch.Tensor is needed, not list"):
        caulk.retained([])


def test_a_leak_is_named_with_its_container_and_line():
    trainer = Trainer()
    weight = torch.ones(MIB // 4, requires_grad=True)
    with pytest.raises(caulk.LeakFound) as caught, caulk.leak_check():
        for _ in range(8):
            trainer.metrics["iou"].append(weight * 2)
    found = caught.value
    assert 8 * MIB <= found.growth < 12 * MIB
    grown = found.grown[0]
    assert (grown.before, grown.after, grown.held_by.expression) == (0, 8, "trainer.metrics['iou']"), str(found)
    line = next(line for line in grown.lines if line.text == 'trainer.metrics["iou"].append(weight * 2)')
    assert Path(line.file) == Path(__file__) and f"grown at {line}" in str(found)


def test_what_is_freed_or_only_waits_for_the_collector_is_no_leak():
    with caulk.leak_check() as check:
        knot = [torch.ones(MIB)]
        knot.append(knot)
        del knot
    assert check.growth < MIB


def test_a_failure_of_the_block_goes_before_its_leak():
    with pytest.raises(KeyError), caulk.leak_check():
        HELD.append(torch.ones(MIB))
        raise KeyError
    HELD.clear()


def test_a_tracker_tells_growth_from_none():
    def track(kept):
        tracker = caulk.MemoryTracker("fit", every=2)
        tracker.start()
        for _ in range(120):
            kept.append(torch.ones(MIB // 8))
            tracker.step()
        return tracker

    leak = track([])
    report = leak.report()
    assert report.state == "grows" and report.steps == 120, report
    assert report.bytes_per_step == pytest.approx(MIB / 2, rel=0.1) and report.interval is not None
    assert str(report).startswith("fit: 120 steps: ") and "per step" in str(report)
    from collections import deque

    assert track(deque(maxlen=1)).report().state in ("flat", "plateaus")


def test_a_tracker_draws_its_readings_and_keeps_no_figure(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    tracker = caulk.MemoryTracker()
    tracker.step(25)
    tracker.plot(tmp_path / "memory.svg")
    assert "<svg" in (tmp_path / "memory.svg").read_text() and not pyplot.get_fignums()


def test_a_tracker_must_be_started():
    with pytest.raises(RuntimeError, match="start"):
        caulk.MemoryTracker().report()


def test_readings_of_a_long_run_are_thinned():
    tracker = caulk.MemoryTracker(every=1)
    for _ in range(5000):
        tracker.step()
    readings = tracker.readings
    assert 1000 < len(readings) <= 2048 and readings[0].step == 0 and readings[-1].step > 4900


def test_statistics_go_to_a_file_or_a_logger(tmp_path, caplog):
    pandas = pytest.importorskip("pandas") if importlib.util.find_spec("pandas") else None
    held = [torch.zeros(MIB, dtype=torch.int16), torch.nn.Linear(4, 4)]
    frame = pandas.DataFrame({"a": range(1000)}) if pandas else None
    lines = tmp_path / "memory.jsonl"
    stats = caulk.log_memory_stats("after epoch", detailed=True, file=lines)
    caulk.log_memory_stats("again", file=lines)
    first, second = (json.loads(line) for line in lines.read_text().splitlines())
    assert first == json.loads(json.dumps(stats)) and second["label"] == "again" and "types" not in second
    assert any(row["dtype"] == "int16" and row["bytes"] >= 2 * MIB for row in first["tensors"])
    assert any(row["name"] == "Linear" for row in first["modules"])
    assert frame is None or any(row["name"] == "pandas.DataFrame" for row in first["frames"])
    with caplog.at_level(logging.INFO, "caulk"):
        caulk.log_memory_stats("logged", detailed=True)
    assert "logged: " in caplog.text and "tensors int16 on cpu" in caplog.text
    del held
