"""Steps and epochs of real training programs, told without a change to them."""

from __future__ import annotations

import textwrap

import pytest

EPOCH, STEPS = 0, 1

HEAD = """
import itertools, random, sys, threading, torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.manual_seed(0)
model = nn.Linear(2, 1)
other = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
second = torch.optim.SGD(other.parameters(), lr=0.01)
data = TensorDataset(torch.randn(40, 2), torch.randn(40, 1))

def backward(net=model, x=None):
    x = torch.randn(4, 2) if x is None else x
    loss = net(x).square().mean()
    loss.backward()
    return loss

def train_step(net=model, optimizer=optimizer, x=None):
    optimizer.zero_grad()
    loss = backward(net, x)
    optimizer.step()
    return loss.item()

def validate(n=3):
    net = model.eval()
    with torch.no_grad():
        for _ in range(n):
            net(torch.randn(4, 2))
    net.train()
"""

#: Name, source, numbers of the epochs, steps at their boundaries, all steps.
LOOPS = {
    "two_ranges": (
        "for epoch in range(4):\n    for step in range(5):\n        train_step()\n    validate()",
        [1, 6, 11, 16],
        20,
    ),
    "in_functions": (
        """
        def train_epoch(n):
            for i in range(n):
                train_step()

        def main():
            for e in range(4):
                train_epoch(5)
                validate()

        main()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "the_same_name_twice": (
        "def main():\n    for _ in range(4):\n        for _ in range(5):\n            train_step()\nmain()",
        [1, 6, 11, 16],
        20,
    ),
    "no_name_and_a_function": (
        """
        class Trainer:
            epoch = 0
            def run_epoch(self, batches):
                for x in batches:
                    train_step(x=x)
            def fit(self):
                while self.epoch < 4:
                    self.run_epoch([torch.randn(4, 2) for _ in range(5)])
                    self.epoch += 1

        Trainer().fit()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "while_with_a_counter": (
        """
        def main(n):
            count = 0
            while count < n:
                for x in [torch.randn(4, 2)] * 5:
                    train_step(x=x)
                count += 1
        main(4)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "while_true": (
        """
        done = 0
        while True:
            for i, x in enumerate(torch.randn(5, 4, 2)):
                train_step(x=x)
            done = done + 1
            if done == 4:
                break
        """,
        [1, 6, 11, 16],
        20,
    ),
    "generator_expression": (
        """
        class Trainer:
            def step(self):
                return train_step()
            def epoch(self, n):
                return sum(self.step() for _ in range(n))

        trainer = Trainer()
        for k in range(4):
            total = trainer.epoch(5)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "comprehension": (
        "def main():\n    for k in range(4):\n        losses = [train_step() for _ in range(5)]\nmain()",
        [1, 6, 11, 16],
        20,
    ),
    "folds": (
        """
        def fit(fold):
            net = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
            for epoch in range(3):
                train_epoch(net, optimizer)
                validate()

        def train_epoch(net, optimizer):
            for step in range(4):
                train_step(net, optimizer)

        def main():
            for fold in range(3):
                fit(fold)

        main()
        """,
        [1, 5, 9, 13, 17, 21, 25, 29, 33],
        36,
    ),
    "folds_of_one_pass": (
        """
        def batches(names):
            random.shuffle(names)
            for name in names:
                yield torch.randn(4, 2), name

        def run_fold(fold):
            for x, y in batches([1, 0, 1, 0, 1, 1]):
                train_step(x=x)
            validate()

        for fold in range(5):
            run_fold(fold)
        """,
        [1, 7, 13, 19, 25],
        30,
    ),
    "gan": (
        """
        def d_step():
            second.zero_grad()
            backward(other)
            second.step()

        def g_step():
            optimizer.zero_grad()
            backward(model)
            optimizer.step()

        for epoch in range(4):
            for i in range(5):
                d_step()
                g_step()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "critic_steps": (
        """
        def main():
            for epoch in range(4):
                for i in range(6):
                    for _ in range(5):
                        train_step(other, second)
                    train_step()
        main()
        """,
        [1, None, None, None],
        None,
    ),
    "accumulation": (
        """
        for epoch in range(4):
            for i in range(10):
                (backward() / 2)
                if i % 2:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "micro_batches_inside": (
        """
        for epoch in range(4):
            for i in range(5):
                optimizer.zero_grad()
                for _ in range(3):
                    backward()
                optimizer.step()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "new_optimizer_each_epoch": (
        """
        kept = []
        for epoch in range(4):
            kept.append(torch.optim.Adam(model.parameters()))
            for _ in range(5):
                train_step(optimizer=kept[-1])
        """,
        [1, 6, 11, 16],
        20,
    ),
    "models_side_by_side": (
        """
        nets = [nn.Linear(2, 1) for _ in range(3)]
        optimizers = [torch.optim.SGD(net.parameters(), lr=0.01) for net in nets]
        for epoch in range(4):
            for x in torch.randn(5, 4, 2):
                for net, opt in zip(nets, optimizers):
                    train_step(net, opt, x)
        """,
        [1, None, None, None],
        None,
    ),
    "one_level_in_lockstep": (
        "for epoch in range(4):\n    for part in ['all']:\n        for step in range(5):\n            train_step()",
        [1, 6, 11, 16],
        20,
    ),
    "chunks_in_epochs": (
        "for epoch in range(4):\n    for chunk in 'abc':\n        for step in range(5):\n            train_step()",
        [1, 16, 31, 46],
        60,
    ),
    "an_epoch_in_the_stream": (
        """
        def stream():
            for e in range(4):
                for x in torch.randn(5, 4, 2):
                    yield e, x

        for epoch, x in stream():
            train_step(x=x)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "a_generator_that_trains": (
        """
        def train():
            for epoch in range(4):
                for step in range(5):
                    yield train_step()

        for loss in train():
            pass
        """,
        [1, 6, 11, 16],
        20,
    ),
    "an_epoch_counted_within_one_loop": (
        """
        epoch = 0
        for step in range(20):
            train_step()
            if step % 5 == 4:
                validate()
                epoch += 1
        """,
        [1, 6, 11, 16],
        20,
    ),
    "exceptions_inside": (
        """
        def main():
            for epoch in range(4):
                for step in range(6):
                    try:
                        if step == 2:
                            raise ValueError
                        train_step()
                    except ValueError:
                        continue
                    finally:
                        pass
                try:
                    validate()
                except ValueError:
                    pass
        main()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "alternating_parts": (
        """
        for epoch in range(4):
            for i in range(3):
                train_step()
            for i in range(3):
                train_step(other, second)
        """,
        [1, 6, 11, 16],
        None,
    ),
    "two_parts_of_a_program": (
        """
        def pretrain():
            for epoch in range(3):
                for i in range(5):
                    train_step(other, second)

        def finetune():
            for epoch in range(3):
                for i in range(5):
                    train_step()

        pretrain()
        finetune()
        """,
        [1, 6, 11, 16, 21, 26],
        30,
    ),
    "second_optimizer_once_per_epoch": (
        """
        for epoch in range(5):
            for i in range(40):
                train_step()
            train_step(other, second)
        """,
        [1, None, None, None, None],
        None,
    ),
    "sgd_by_hand": (
        """
        def sgd():
            backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
                    p.grad = None

        del optimizer, second
        torch.optim.SGD.step.hooked = False  # As if no optimizer had been made.
        for epoch in range(4):
            for i in range(5):
                sgd()
            params = list(model.parameters())
            loss = model(torch.randn(4, 2)).square().mean()
            grads = torch.autograd.grad(loss, params, create_graph=True)
            torch.autograd.grad(sum(g.sum() for g in grads), params)
        """,
        [1, 6, 11, 16],
        None,
    ),
    "solver": (
        """
        def solve():
            q = torch.zeros(3, requires_grad=True)
            for _ in range(4):
                (grad,) = torch.autograd.grad((q - 1).square().sum(), q)
                q = (q - 0.1 * grad).detach().requires_grad_()

        torch.optim.SGD.step.hooked = False
        for epoch in range(3):
            for goal in range(4):
                solve()
        """,
        [1, 17, 33],
        48,
    ),
    "line_by_line_at_module_level": (
        """
        import contextlib
        with contextlib.nullcontext():
            for ep in range(4):
                batch = 0
                while batch < 5:
                    train_step()
                    batch += 1
        """,
        [1, 6, 11, 16],
        20,
    ),
    "coroutines": (
        """
        import asyncio

        async def train():
            for epoch in range(4):
                for i in range(5):
                    train_step()
                    await asyncio.sleep(0)

        asyncio.run(train())
        """,
        [1, 6, 11, 16],
        20,
    ),
    "in_a_thread": (
        """
        def work():
            for epoch in range(4):
                for i in range(5):
                    train_step()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "mapped": (
        "for epoch in range(6):\n    list(map(lambda _: train_step(), range(5)))",
        [1, None, None, None, None, None],
        30,
    ),
    "loader": (
        """
        for epoch in range(4):
            for x, y in DataLoader(data, batch_size=8):
                train_step(x=x)
            with torch.no_grad():
                for x, y in DataLoader(data, batch_size=20):
                    model(x)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "loader_until_enough_steps": (
        """
        loader, held_out = DataLoader(data, batch_size=8), DataLoader(data, batch_size=20)
        steps = 0
        while steps < 18:
            for x, y in loader:
                train_step(x=x)
                steps += 1
                if steps % 3 == 0:
                    for x, y in held_out:
                        model(x)
                if steps == 18:
                    break
        """,
        [1, 6, 11, 16],
        18,
    ),
    "loader_behind_a_generator": (
        """
        def endless(loader):
            while True:
                yield from loader

        batches = endless(DataLoader(data, batch_size=8, shuffle=True))
        for step in range(20):
            x, y = next(batches)
            train_step(x=x)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "several_steps_per_batch": (
        """
        for number in range(4):
            for x, y in DataLoader(data, batch_size=8):
                for _ in range(3):
                    train_step(x=x)
        """,
        [1, 16, 31, 46],
        60,
    ),
    "persistent_workers": (
        """
        if __name__ == "__main__":
            loader = DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True)
            batches = itertools.chain.from_iterable(loader for _ in range(4))
            for x, y in batches:
                train_step(x=x)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "two_loaders_side_by_side": (
        """
        one, two = DataLoader(data, batch_size=8), DataLoader(data, batch_size=4)
        batches = itertools.chain.from_iterable(zip(one, two) for _ in range(4))
        for (x, _), (y, _) in batches:
            train_step(x=x)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "optimizers_per_parameter": (
        """
        net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        owned = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(lambda p: owned[p].step() or owned[p].zero_grad())
        for epoch in range(4):
            for i in range(5):
                backward(net)
        """,
        [1, 6, 11, 16],
        20,
    ),
    "line_search": (
        """
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        def closure():
            optimizer.zero_grad()
            return backward()
        for epoch in range(4):
            for i in range(5):
                optimizer.step(closure)
        """,
        [1, 6, 11, 16],
        20,
    ),
}

#: Programs without epochs: the source and all steps.
STEPS_ONLY = {
    "one_loop": ("for step in range(30):\n    train_step()\n    if step % 10 == 9:\n        validate()", 30),
    "while_loop": ("step = 0\nwhile step < 30:\n    train_step()\n    step += 1", 30),
    "labels_for_variables": (
        "for x, label in zip(torch.randn(30, 4, 2), [0, 0, 1] * 10):\n    x = x.clone()\n    train_step(x=x)",
        30,
    ),
    "episodes": (
        """
        def rollout():
            return [model(torch.randn(1, 2)) for _ in range(5)]

        for episode in range(30):
            loss = sum(rollout()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        30,
    ),
    "full_batch": ("for epoch in range(30):\n    train_step()\n    validate()", 30),
    "stream": (
        """
        class Stream(IterableDataset):
            def __iter__(self):
                for _ in range(120):
                    yield torch.randn(2)

        for x in DataLoader(Stream(), batch_size=4):
            train_step(x=x)
        """,
        30,
    ),
    "one_epoch": ("for epoch in range(1):\n    for step in range(30):\n        train_step()", 30),
}


def program(source: str) -> str:
    return HEAD + textwrap.dedent(source)


@pytest.mark.parametrize("name", LOOPS)
def test_epochs_are_told(train, name):
    source, boundaries, steps = LOOPS[name]
    told = train(program(source))
    assert told.stderr == ""
    if None in boundaries:
        assert told.epochs[-1] == len(boundaries) - 1
        assert len(told.epochs) >= len(boundaries) - 1
    else:
        assert told.epoch_steps == boundaries
        assert told.epochs == list(range(len(boundaries)))
    if steps is not None:
        assert told.steps == steps


@pytest.mark.parametrize("name", STEPS_ONLY)
def test_without_epochs_steps_are_told(train, name):
    source, steps = STEPS_ONLY[name]
    told = train(program(source))
    assert told.stderr == ""
    assert told.steps == steps
    assert told.epochs == [0]
    boundaries = told.of("boundary")
    assert [call[1] for call in boundaries if call[0] == STEPS] == list(range(2, steps + 1))


def phases(told, unit=EPOCH):
    return [call[3] for call in told.of("boundary") if call[0] == unit]


def test_phases_are_told_with_the_boundaries(train):
    told = train(program("for epoch in range(3):\n    for i in range(4):\n        train_step()\n    validate()"))
    run, training, validation = 0, 1, 2
    assert phases(told) == [run, validation, validation]
    assert set(phases(told, STEPS)) == {training}


def test_loops_are_reported_once(train):
    told = train(LOOPS["two_ranges"][0].join([HEAD, ""]))
    first = len(HEAD.splitlines()) + 1
    (epoch, step) = told.of("loop")
    assert epoch[:1] + epoch[2:] == [EPOCH, first, "<module>", "epoch", "loop"]
    assert step[:1] + step[2:] == [STEPS, first + 1, "<module>", "step", "loop"]


def test_a_loader_is_named_as_the_source(train):
    told = train(program(LOOPS["loader_until_enough_steps"][0]))
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
    told = train(program(source))
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
    assert phases(told) == [0, 2, 2]
    assert told.steps == 15


def test_steps_are_marked_ever_more_rarely(train):
    told = train(program("for step in range(1000):\n    train_step()"))
    marks = [call[1] for call in told.of("boundary") if call[0] == STEPS]
    assert marks[:64] == list(range(2, 66))
    assert marks[64:68] == [66, 68, 70, 72]
    assert marks[-1] - marks[-2] == 16
    assert len(marks) < 5 * 64


def test_short_epochs_are_marked_ever_more_rarely(train):
    told = train(program("for epoch in range(300):\n    for step in range(2):\n        train_step()"))
    assert told.epochs[:64] == list(range(64))
    assert all(b - a in (1, 2, 4) for a, b in zip(told.epochs, told.epochs[1:]))
    assert 100 < len(told.epochs) < 300


def test_few_steps_are_marked_within_known_epochs(train):
    told = train(program("for epoch in range(6):\n    for step in range(100):\n        train_step()"))
    marks = [call[1] for call in told.of("boundary") if call[0] == STEPS]
    assert len([mark for mark in marks if mark > 101]) <= 5 * 8
    assert all(call[4] == 0 for call in told.of("boundary") if call[0] == STEPS and call[1] > 101)


def sites(told):
    """The last that was told of each backward site: line text by position in the program, and flags and counts."""
    last = {}
    for _file, line, function, count, retain, create, stale, checked in told.of("backward_site"):
        last[line, retain, create] = (function, count, stale, checked)
    return last


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
    line = len(HEAD.splitlines())
    told = train(program(source))
    assert {(key[0] - line, *key[1:]): value[:2] for key, value in sites(told).items()} == {
        (7, True, False): ("main", 24),
        (8, False, False): ("main", 24),
        (9, True, True): ("main", 24),
    }
    # The gradients that the first pass starts with were cleared; the others start with this step's own.
    assert {(key[0] - line): value[2:] for key, value in sites(told).items()} == {7: (0, 20), 8: (0, 0), 9: (0, 0)}


def test_many_backward_passes_are_still_counted(train):
    source = """
    for i in range(3000):
        train_step()
        if i % 100 == 0:
            backward(other).backward
            other(torch.ones(1, 2)).square().mean().backward(retain_graph=True)
    """
    found = sites(train(program(source)))
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
    line = len(HEAD.splitlines())
    found = {key[0] - line: value for key, value in sites(train(program(source))).items()}
    (left_over,) = [value for key, value in found.items() if key < 0]
    assert left_over[1:] == (30, 20, 20)
    assert found[6][1:] == (30, 0, 20)


def test_torch_stays_compilable(train):
    source = """
    class Net(nn.Module):
        def forward(self, x):
            return model(x)

    net = torch.compile(Net(), backend="eager", fullgraph=True)

    @torch.compile(backend="eager")
    def compiled_step(x):
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    only_the_optimizer = torch.compile(lambda: optimizer.step(), backend="eager")

    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=8):
            backward(net, x)
            optimizer.step()
        only_the_optimizer()
        net.eval()
        with torch.no_grad():
            net(x)
        net.train()
    for _ in range(3):
        compiled_step(x)
    import torch._dynamo.utils as utils
    assert not [name for name in utils.counters["graph_break"] if "caulk" in str(name)], utils.counters["graph_break"]
    """
    told = train(program(source))
    assert told.epoch_steps[:3] == [1, 6, 11]


def test_threads_may_train_side_by_side(train):
    source = """
    def work(net):
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        for epoch in range(3):
            for i in range(20):
                train_step(net, opt)

    threads = [threading.Thread(target=work, args=(nn.Linear(2, 1),)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """
    told = train(program(source))
    assert len(told.epochs) == 3
    assert 230 <= told.steps <= 240


def test_an_exception_in_a_step_is_the_programs_own(train):
    source = """
    for epoch in range(3):
        for i in range(5):
            try:
                torch.zeros(1, requires_grad=True).backward(torch.zeros(7))
            except RuntimeError:
                train_step()
            try:
                next(iter(DataLoader(data, batch_size=8, collate_fn=lambda batch: 1 / 0)))
            except ZeroDivisionError:
                pass
    """
    assert train(program(source)).epoch_steps == [1, 6, 11]


def test_nothing_of_the_program_is_kept_alive(train):
    source = """
    import gc, weakref
    gc.disable()
    gone = []
    class Batch(list):
        pass

    def train_epoch():
        batches = [Batch([torch.randn(4, 2)]) for _ in range(4)]
        gone.extend(map(weakref.ref, batches))
        opt = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
        gone.append(weakref.ref(opt))
        for batch in batches:
            train_step(x=batch[0])
            opt.step()

    k = 0
    while k < 3:
        train_epoch()
        assert not [ref for ref in gone if ref() is not None]
        k += 1
    """
    assert train(program(source)).stderr == ""


LIGHTNING = """
import logging, warnings
warnings.simplefilter("ignore")
for name in ("lightning.pytorch", "pytorch_lightning"):
    logging.getLogger(name).setLevel(logging.ERROR)
import {package} as L

class System(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)
    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()
    def validation_step(self, batch, index):
        self.net(batch[0])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

for _ in range(2):
    trainer = L.Trainer(
        max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu",
    )
    trainer.fit(System(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=20))
"""


@pytest.mark.full
@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning_tells_its_epochs(run, name):
    pytest.importorskip(name.partition(".")[0])
    told = run(HEAD + LIGHTNING.format(package=name))
    assert told.epochs == [0, 1, 2, 3, 4, 5]
    assert told.epoch_steps == [1, 6, 11, 16, 21, 26]
    assert phases(told) == [0, 2, 2, 2, 2, 2]
    assert (EPOCH, "lightning") in told.sources


TRANSFORMERS = """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
rows = [{"input_ids": torch.arange(4), "labels": torch.tensor(0)} for _ in range(20)]
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=4, eval_strategy="epoch", save_strategy="no",
    logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows, eval_dataset=rows).train()
"""


@pytest.mark.full
def test_transformers_tells_its_epochs(run):
    pytest.importorskip("transformers")
    told = run(HEAD + TRANSFORMERS)
    assert told.epoch_steps == [1, 6, 11, 16]
    assert phases(told) == [0, 2, 2, 2]
    assert (EPOCH, "transformers") in told.sources


ACCELERATE = """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net, opt, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=4))
for epoch in range(4):
    for x, y in loader:
        with accelerator.accumulate(net):
            loss = net(x).square().mean()
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
"""


@pytest.mark.full
def test_accelerate_is_seen_through(run):
    pytest.importorskip("accelerate")
    told = run(HEAD + ACCELERATE)
    assert told.epoch_steps == [1, 6, 11, 16]
    assert told.steps == 20
    (place,) = {(call[2], call[1] - len(HEAD.splitlines())) for call in told.of("backward_site")}
    assert place == ("<module>", 10)
