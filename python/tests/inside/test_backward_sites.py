"""Lines that start backward passes, and gradients that they start with."""

from __future__ import annotations

import pytest


def test_backward_sites_and_their_flags_are_told(train):
    source = """
    def main():
        for epoch in range(2):
            for i in range(12):
                optimizer.zero_grad()
                loss = model(torch.randn(4, 2)).square().mean()
                loss.backward(retain_graph=True)
                loss.backward()
                torch.autograd.grad(model(torch.ones(1, 2)).square().sum(), model.parameters(), create_graph=True)
                optimizer.step()
    main()
    """
    told = train(source)
    assert {key: value[:2] for key, value in told.sites.items()} == {
        (7, True, False): ("main", 24),
        (8, False, False): ("main", 24),
        (9, True, True): ("main", 24),
    }
    # The gradients that the first pass starts with were cleared; the others start with this step's own.
    assert {key[0]: value[2:] for key, value in told.sites.items()} == {7: (0, 20), 8: (0, 0), 9: (0, 0)}


def test_many_backward_passes_are_still_counted(train):
    source = """
    for i in range(3000):
        train_step()
        if i % 100 == 0:
            backward(other).backward
            other(torch.ones(1, 2)).square().mean().backward(retain_graph=True)
    """
    found = train(source).sites
    assert sum(count for (_, retain, _), (_, count, *_) in found.items() if retain) == 30
    assert sum(count for (_, retain, _), (_, count, *_) in found.items() if not retain) in range(3020, 3031)


@pytest.mark.parametrize("zeros", ["None", "p.grad * 0"])
def test_gradients_left_over_are_told(train, zeros):
    source = f"""
    for i in range(30):
        backward()
        optimizer.step()
        second.zero_grad()
        other(torch.randn(4, 2)).square().mean().backward()
        second.step()
        for p in other.parameters():
            p.grad = {zeros}
    """
    found = {key[0]: value for key, value in train(source).sites.items()}
    (left_over,) = [value for key, value in found.items() if key < 0]
    assert left_over[1:] == (30, 20, 20)
    assert found[6][1:] == (30, 0, 20)


def test_a_torch_without_a_common_engine_call_is_hooked_too(train):
    source = """
    # As in torch 2.0 and 2.1, where `backward` and `grad` call the engine themselves.
    import caulk
    caulk.epoch()
    from types import SimpleNamespace
    from caulk._hooks_torch import _hook_backward
    calls = []
    old = SimpleNamespace(
        _C=torch._C,
        autograd=SimpleNamespace(backward=lambda *a, **k: calls.append((a, k)), grad=lambda *a, **k: "gradients"),
    )
    _hook_backward(old, caulk._marks, caulk._marks.torch_steps, lambda: False)
    old.autograd.backward("loss", retain_graph=True)
    old.autograd.backward("loss", None, None, True)
    assert old.autograd.grad("loss", "inputs") == "gradients"
    assert calls == [(("loss",), {"retain_graph": True}), (("loss", None, None, True), {})]
    """
    told = train(source)
    flags = [tuple(key[1:]) for key in told.sites]
    assert flags == [(True, False), (True, True), (False, False)]


def test_looking_runs_no_code_of_the_programs(train):
    source = """
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    def count(step):
        step()
        seen.clear()
        for i in range(3):
            step()
        return len(seen)

    loud = Loud(torch.ones(2)).requires_grad_()
    loud_optimizer = torch.optim.SGD([loud], lr=0.1)

    def loud_step():
        loud.sum().backward()
        loud_optimizer.step()

    def functions_step():
        with Functions():
            train_step()

    def operations_step():
        with Operations():
            train_step()

    print([count(step) for step in (loud_step, functions_step, operations_step)])
    import caulk
    caulk._marks.fail("test", ValueError("as without caulk"))
    print([count(step) for step in (loud_step, functions_step, operations_step)])
    """
    with_caulk, without = train(source, failing=True).stdout.splitlines()
    assert with_caulk == without


def test_a_capture_is_left_alone(train):
    source = """
    import caulk
    train_step()
    stale = caulk._marks.torch_steps.stale
    asked = []
    looked = torch.Tensor.any
    class Captured(torch.Tensor):
        pass
    stale._tensors.are_captured = lambda: asked.append(1) or True
    class Device:
        type = "cuda"
    class Gradient:
        is_sparse = False
        device = Device
        def detach(self):
            raise AssertionError("looked at")
    class Parameter:
        is_leaf = requires_grad = True
        grad = Gradient()
        def numel(self):
            return 1
    class Optimizer:
        param_groups = [{"params": [Parameter()]}]
    stale._tensors.is_plain = lambda tensor: True
    optimizer = Optimizer()
    stale.meets(optimizer)
    stale.stepped(optimizer)
    before = stale.active[-1].looks_left
    stale.before()
    assert asked and stale.active[-1].looks_left == before
    """
    train(source)


def test_gradients_are_looked_at_again_later_on(train):
    source = """
    for i in range(300):
        if i >= 40:
            optimizer.zero_grad()
        backward()
        optimizer.step()
    """
    ((_, count, stale, checked),) = train(source).sites.values()
    # 20 looks at the beginning, but for the first pass, and two each after 64, 128 and 256 steps.
    assert (count, stale, checked) == (300, 20, 26)
