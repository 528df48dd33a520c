"""Steps and epochs of real training programs, told without a change to them."""

from __future__ import annotations

import pytest

EPOCH, STEPS = 0, 1

#: Name, source, numbers of the epochs, steps at their boundaries, all steps.
LOOPS = {
    "two_ranges": (
        "for epoch in range(4):\n    for step in range(5):\n        train_step()\n    validate()",
        [1, 6, 11, 16],
        20,
    ),
    "a_number_of_epochs_around_parts_of_each": (
        """
        def epoch(parts=2):
            for _ in range(parts):
                for i in range(5):
                    train_step()

        def main(epochs=4):
            for number in range(1, epochs + 1):
                epoch()

        main()
        """,
        [1, 11, 21, 31],
        40,
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
    "an_attribute_as_the_variable": (
        """
        class Trainer:
            def fit(self):
                for self.epoch in range(4):
                    for x in [torch.randn(4, 2)] * 5:
                        train_step(x=x)

        Trainer().fit()
        """,
        [1, 6, 11, 16],
        20,
    ),
    "long_epochs_under_an_unreadable_variable": (
        """
        class Trainer:
            @property
            def epoch(self):
                raise SystemExit("asked")
            @epoch.setter
            def epoch(self, value):
                pass
            def fit(self):
                for self.epoch in range(3):
                    for _ in range(150):
                        train_step()

        Trainer().fit()
        """,
        [1, 151, 301],
        450,
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
    "one_optimizer_at_two_depths": (
        """
        def main():
            for epoch in range(4):
                for i in range(4):
                    train_step()
                    for _ in range(3):
                        train_step()
        main()
        """,
        [1, 17, 33, 49],
        64,
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
    "two_parts_of_each_fold": (
        """
        def fit(net, optimizer, epochs):
            for e in range(epochs):
                for i in range(4):
                    train_step(net, optimizer)

        def tune(net, optimizer, epochs):
            for e in range(epochs):
                for i in range(4):
                    train_step(net, optimizer)

        for fold in range(3):
            fit(other, second, 2)
            tune(model, optimizer, 2)
        """,
        list(range(1, 48, 4)),
        48,
    ),
    "cells_of_a_notebook": (
        """
        def loop(cells):
            while cells:
                exec(cells.pop(0), {**globals()})

        cell = "for e in range(3):\\n    for i in range(4):\\n        train_step()"
        loop([compile(cell, "<ipython-input>", "exec") for _ in range(3)])
        """,
        list(range(1, 36, 4)),
        36,
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
    "full_batch": (
        "for epoch in range(8):\n    train_step()\n    validate()",
        list(range(1, 9)),
        8,
    ),
    "full_batch_of_a_gan": (
        """
        for epoch in range(8):
            train_step()
            train_step(other, second)
        """,
        list(range(1, 9)),
        8,
    ),
    "numbers_of_steps_that_have_epoch_in_their_name": (
        """
        for epoch in range(4):
            epoch_loss = 0.0
            for epoch_step, x in enumerate([torch.randn(4, 2)] * 5):
                train_step(x=x)
                epoch_loss += 0.5
        """,
        [1, 6, 11, 16],
        20,
    ),
    "one_batch_per_epoch": (
        """
        for epoch in range(8):
            for epoch_step, x in enumerate([torch.randn(4, 2)]):
                train_step(x=x)
        """,
        [1, *[None] * 7],
        8,
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
    "full_batch": ("for turn in range(30):\n    train_step()\n    validate()", 30),
    "a_batch_per_turn_that_is_called_epoch": (
        "for epoch_batch, (x, y) in enumerate(DataLoader(data, batch_size=2)):\n    train_step(x=x)",
        20,
    ),
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


@pytest.mark.parametrize("name", LOOPS)
def test_epochs_are_told(train, name):
    source, boundaries, steps = LOOPS[name]
    told = train(source)
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
    told = train(source)
    assert told.stderr == ""
    assert told.steps == steps
    assert told.epochs == [0]
    boundaries = told.of("boundary")
    assert [call[1] for call in boundaries if call[0] == STEPS] == list(range(2, steps + 1))
