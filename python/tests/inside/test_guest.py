"""Training goes on as without caulk: compiled, in threads, through exceptions, with nothing kept alive."""

from __future__ import annotations


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

    @torch.compile(backend="eager", fullgraph=True)
    def evaluated(x):
        return model.eval()(x)

    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=8):
            backward(net, x)
            optimizer.step()
        only_the_optimizer()
        evaluated(x)
        net.eval()
        with torch.no_grad():
            net(x)
        net.train()
    for _ in range(3):
        compiled_step(x)
    import torch._dynamo.utils as utils
    assert not [name for name in utils.counters["graph_break"] if "caulk" in str(name)], utils.counters["graph_break"]
    """
    told = train(source)
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
    told = train(source)
    # While one thread cuts a boundary, those of another wait, the last of them alone.
    assert told.epochs[-1] == 2 and len(told.epochs) <= 3
    assert 230 <= told.steps <= 240


def test_a_thread_that_goes_on_with_the_training_is_followed(train):
    source = """
    import time

    def work(net, steps):
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        for i in range(steps):
            train_step(net, opt)
            time.sleep(0.01)

    def rest(net, ended):
        work(net, 20)
        ended.wait()

    # The first is there to the end, and steps no more.
    ended = threading.Event()
    first = threading.Thread(target=rest, args=(nn.Linear(2, 1), ended))
    first.start()
    time.sleep(0.4)
    for _ in range(4):
        second = threading.Thread(target=work, args=(nn.Linear(2, 1), 100))
        second.start()
        second.join()
    ended.set()
    """
    told = train(source)
    assert told.steps >= 415
    assert [index for unit, index, *_ in told.of("boundary") if unit == 1][-1] > 300


def test_an_epoch_that_begins_while_another_thread_tells_of_one_is_told_later(train):
    source = """
    import caulk
    agent = caulk._marks.agent
    tell, helper, works, ends, told = agent.boundary, [], *[threading.Event() for _ in range(3)]
    def boundary(*arguments):
        if threading.current_thread() in helper:
            telling.set()
            told.wait(60)
        tell(*arguments)
    agent.boundary, telling = boundary, threading.Event()

    class Waits(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()
        @staticmethod
        def backward(ctx, gradient):
            works.set()
            ends.wait(60)
            return gradient

    def work():
        Waits.apply(torch.ones(2, requires_grad=True)).sum().backward()
    for epoch in range(5):
        if epoch == 1:
            helper.append(threading.Thread(target=work))
            helper[0].start()
            works.wait(60)
        for i in range(20):
            train_step()
            if (epoch, i) == (1, 0):
                ends.set()
                telling.wait(60)
    told.set()
    helper[0].join()
    """
    # The helper's pass lets the second epoch wait, and its end tells of it until the last one has begun.
    assert train(source).epochs == [0, 1, 4]


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
    assert train(source).epoch_steps == [1, 6, 11]


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
    assert train(source).stderr == ""
