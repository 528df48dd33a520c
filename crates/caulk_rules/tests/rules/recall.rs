//! Leaks as strangers write them, in words that no rule knows, each beside the same program without the leak.

use caulk_core::LeakClass;

use crate::caution::{alarms, check_pair};

#[test]
fn a_tensor_that_a_differentiated_sum_is_made_of() {
    let text = "\
def passes(net, opt, rows):
    shown = []
    for row in rows:
        opt.zero_grad()
        pieces = net.goal(row)
        whole = sum(pieces) if isinstance(pieces, tuple) else pieces
        whole.backward()
        opt.step()
        shown.append(@)
    return shown
";
    check_pair(text, "pieces[0].item()", "pieces", LeakClass::GraphKeptInContainer);
}

#[test]
fn the_output_of_something_whose_loss_is_differentiated() {
    let text = "\
import torch.nn.functional as F

def fit(student, rows, rounds, opt):
    for number in range(rounds):
        running = 0.0
        for x, y in rows:
            opt.zero_grad()
            loss = F.mse_loss(student(x), y)
            loss.backward()
            opt.step()
            running += @
        print(running)
";
    check_pair(text, "float(loss)", "loss", LeakClass::LossKeptWithGraph);
}

#[test]
fn what_a_closure_gives_the_optimizer_comes_back() {
    let text = "\
import torch

def fit(net, loader, ce):
    opt = torch.optim.LBFGS(net.parameters())
    curve = []
    for epoch in range(90):
        for x, y in loader:
            def again():
                opt.zero_grad()
                loss = ce(net(x), y)
                loss.backward()
                return loss

            value = opt.step(again)
            curve.append(@)
    return curve
";
    check_pair(text, "value.item()", "value", LeakClass::GraphKeptInContainer);
}

#[test]
fn what_accelerate_gathers_keeps_its_graph() {
    let text = "\
from accelerate import Accelerator

def run(net, opt, rows, epochs):
    acc = Accelerator()
    net, opt, rows = acc.prepare(net, opt, rows)
    for epoch in range(epochs):
        seen = []
        for row in rows:
            loss = net(**row).loss
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            seen.append(acc.gather_for_metrics(@))
        print(len(seen))
";
    check_pair(text, "loss.detach()", "loss", LeakClass::GraphKeptInContainer);
}

#[test]
fn what_lightning_differentiates_is_kept_by_the_module() {
    let text = "\
import lightning.pytorch as pl

class Net(pl.LightningModule):
    def __init__(self, task):
        super().__init__()
        self.task = task
        self.kept = []

    def training_step(self, batch, number):
        cost = self.task.cost(batch)
        self.kept.append(@)
        return cost

    def on_train_epoch_end(self):
        print(len(self.kept))
        self.kept.clear()
";
    check_pair(text, "cost.item()", "cost", LeakClass::GraphKeptInContainer);
}

#[test]
fn a_repeated_list_of_sums() {
    let text = "\
import torch
from torch import nn

class Gap(nn.Module):
    def __init__(self, net, n):
        super().__init__()
        self.net = net
        self.shares = [0] * n

    def forward(self, a, b):
        loss = torch.abs(self.net(a) - self.net(b)).mean()
        self.shares[-1] += @
        return loss

def train(net, loader, opt):
    gap = Gap(nn.Linear(3, 3), 3)
    for epoch in range(100):
        for x, y in loader:
            loss = gap(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
";
    check_pair(text, "loss.item()", "loss", LeakClass::LossKeptWithGraph);
}

#[test]
fn a_cached_method_of_objects_that_somebody_else_makes() {
    let text = "\
from functools import lru_cache

class Rows:
    def __init__(self, table):
        self.table = table

    @lru_cache(None)
    def names(self):
        return list(self.table)
";
    assert_eq!(alarms(text), [LeakClass::CachedMethod]);
    assert_eq!(alarms(&format!("{text}\nROWS = Rows({{}})\n")), []);
}

#[test]
fn a_hook_of_every_object_on_a_model_that_it_is_given() {
    let text = "\
class Probe:
    def __init__(self, net, layers):
        self.net = net
        self.seen = {}
        for number, layer in enumerate(layers):
            @layer.register_forward_hook(self.make(number))

    def make(self, number):
        def hook(module, given, out):
            self.seen[number] = given[0]

        return hook

    def close(self):
        self.handle.remove()
";
    check_pair(text, "self.handle = ", "", LeakClass::HookNeverRemoved);
}

#[test]
fn a_hook_more_at_every_call() {
    let text = "\
class Probe:
    def __init__(self, net):
        self.net = net

    def take(self, name, rows):
        @self.net.fc.register_forward_hook(self.make(name))
        found = [self.net(row) for row in rows]
        handle.remove()
        return found

    def make(self, name):
        def hook(module, given, out):
            print(name)

        return hook
";
    check_pair(text, "handle = ", "", LeakClass::HookNeverRemoved);
}

#[test]
fn an_output_beside_others_on_the_context() {
    let text = "\
import torch

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.new_empty(3)
        ctx.kept = (x.shape, @)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad
";
    check_pair(text, "out.shape", "out", LeakClass::ContextAttributeTensor);
}

#[test]
fn failures_of_numbered_attempts() {
    let text = "\
import torch
from torch import nn

class Failed(RuntimeError):
    pass

def attempt(number, rows):
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1 * number)
    for x, y in rows:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if loss.item() > 9:
        raise Failed(number)

class Search:
    def __init__(self, rows):
        self.rows = rows
        self.failed = {}

    def attempt(self, number):
        try:
            attempt(number, self.rows)
        except Failed as why:
            self.failed[number] = @

def main(rows):
    search = Search(rows)
    for turn in range(40):
        for half in range(2):
            search.attempt(turn * 2 + half)
";
    check_pair(text, "str(why)", "why", LeakClass::ExceptionKeepsFrames);
}

#[test]
fn records_are_held_for_nobody() {
    let text = "\
import logging.handlers

log = logging.getLogger(__name__)

def main(model, rows):
    held = logging.handlers.MemoryHandler(200@)
    log.addHandler(held)
    for row in rows:
        log.debug('%s', model(row))
";
    check_pair(text, ", target=logging.FileHandler('a.log')", "", LeakClass::LogRecordsKept);
}

#[test]
fn groups_of_new_heads() {
    let text = "\
import torch
from torch import nn

class Study:
    def __init__(self, rows):
        self.rows = rows
        self.body = nn.Linear(8, 8)
        self.opt = torch.optim.SGD(self.body.parameters(), lr=0.1, momentum=0.9)

    def turn(self):
        head = nn.Linear(8, 2)
        @
        self.opt.add_param_group({'params': head.parameters()})
        for x, y in self.rows:
            loss = nn.functional.cross_entropy(head(self.body(x)), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

def main(rows):
    study = Study(rows)
    for epoch in range(50):
        study.turn()
";
    check_pair(text, "del self.opt.param_groups[1:]", "pass", LeakClass::OptimizerRecreated);
}

#[test]
fn tasks_that_are_kept_when_they_are_done() {
    let text = "\
import asyncio

class Service:
    def __init__(self, net):
        self.net = net
        self.inbox = asyncio.Queue(maxsize=8)
        self.running = set()

    async def store(self, row):
        await asyncio.sleep(0.1)
        return row

    async def pump(self):
        while True:
            row = await self.inbox.get()
            task = asyncio.create_task(self.store(row))
            self.running.add(task)
            @

def main(net):
    asyncio.run(Service(net).pump())
";
    check_pair(text, "task.add_done_callback(self.running.discard)", "pass", LeakClass::UnboundedHistory);
}

#[test]
fn entries_under_the_step_that_a_trainer_counts() {
    let text = "\
import torch
from transformers import TrainerCallback

class Drift(TrainerCallback):
    def __init__(self, probe):
        self.probe = probe
        self.seen = {}

    def on_step_end(self, args, state, control, model=None, **kw):
        with torch.no_grad():
            now = model(input_ids=self.probe).logits.softmax(-1)
        @ = now
";
    check_pair(text, "self.seen['last']", "self.seen[state.global_step]", LeakClass::UnboundedHistory);
}

#[test]
fn a_table_of_every_origin_of_every_epoch() {
    let text = "\
import numpy as np
import pandas as pd
import torch
from torch import nn

class Board:
    def __init__(self):
        self.table = pd.DataFrame()

    def submit(self, epoch, actual):
        rows = pd.DataFrame({'epoch': np.full(actual.size, epoch), 'actual': actual.ravel()})
        self.table = @

def main(past, future):
    net, board = nn.Linear(4, 4), Board()
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(50):
        for x, y in past:
            loss = nn.functional.l1_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            for origin in range(0, 700, 24):
                board.submit(epoch, net(future[origin]).numpy())
";
    check_pair(text, "rows", "pd.concat([self.table, rows])", LeakClass::UnboundedHistory);
}

#[test]
fn a_finalizer_that_keeps_what_it_waits_for() {
    let text = "\
import os
import weakref

import numpy as np
import torch
from torch import nn

class Arena:
    def __init__(self, path, rows):
        self.path = path
        self.rows = np.empty((rows, 64), np.float32)
        self.closer = weakref.finalize(self, @)

    def close(self):
        os.unlink(self.path)

def main(loader):
    net = nn.Linear(64, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(30):
        arena = Arena('rows', 500)
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
";
    check_pair(text, "os.unlink, path", "self.close", LeakClass::HookNeverRemoved);
}

#[test]
fn state_that_an_object_feeds_back_from_call_to_call() {
    let text = "\
import torch
from torch import nn

class Beat(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(1, 8, batch_first=True)

    def forward(self, x, state=None):
        return self.cell(x, state)

class Ward:
    def __init__(self, net):
        self.net = net
        self.memory = None

    def push(self, part):
        out, self.memory = self.net(part, @)
        return out.mean().item()

def watch(hours):
    ward = Ward(Beat())
    for hour in range(hours):
        for part in range(100):
            ward.push(torch.randn(1, 3, 4))

watch(30)
";
    check_pair(
        text,
        "None if self.memory is None else self.memory.detach()",
        "self.memory",
        LeakClass::StateNotDetached,
    );
}

#[test]
fn what_puts_batches_together_keeps_samples_in_the_workers() {
    let text = "\
import torch
from torch.utils.data import DataLoader, Dataset

class Tones(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        return torch.zeros(8000), number

class Mix:
    def __init__(self):
        self.others = []

    def __call__(self, samples):
        for wave, number in samples:
            self.others.append(@)
        return torch.stack([wave for wave, number in samples])

def main(net, opt):
    loader = DataLoader(Tones(), collate_fn=Mix(), num_workers=2)
    for epoch in range(30):
        for wave in loader:
            loss = net(wave).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
";
    let leaks = alarms(&text.replace('@', "wave.clone()"));
    assert_eq!(leaks, [LeakClass::WorkerMemoryGrows]);
    let cleared = text.replace(
        "        for wave, number in samples:\n",
        "        self.others.clear()\n        for wave, number in samples:\n",
    );
    assert_eq!(alarms(&cleared.replace('@', "wave.clone()")), []);
    let here = text.replace(", num_workers=2", "");
    assert_eq!(alarms(&here.replace('@', "wave.clone()")), [LeakClass::UnboundedHistory]);
}

#[test]
fn a_cached_result_for_every_group_that_is_drawn() {
    let text = "\
from functools import cache

import numpy as np
import torch

class Graph:
    def near(self, group):
        return torch.eye(len(group))
    near = cache(near)

def main(net, opt, epochs):
    rng = np.random.default_rng(0)
    graph = Graph()
    seen = {}
    for epoch in range(epochs):
        for step in range(100):
            group = tuple(int(node) for node in rng.choice(900, 12, replace=False))
            if @ not in seen:
                seen[@] = graph.near(group)
            loss = net(seen[@]).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
";
    check_pair(text, "len(group)", "group", LeakClass::UnboundedCache);
}

#[test]
fn a_step_of_a_class_that_somebody_else_makes_and_whose_base_has_the_loop() {
    let text = "\
import torch
from torch import nn

class Loop:
    def __init__(self, net, rows):
        self.net = net
        self.rows = rows
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(self, epochs):
        for epoch in range(epochs):
            for x, y in self.rows:
                self.turn(x, y)

    def turn(self, x, y):
        raise NotImplementedError

class Mine(Loop):
    def __init__(self, net, rows):
        super().__init__(net, rows)
        self.curve = []

    def turn(self, x, y):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.opt.step()
        self.curve.append(@)
";
    check_pair(text, "loss.item()", "loss", LeakClass::GraphKeptInContainer);
}

#[test]
fn callbacks_that_are_called_by_name() {
    let text = "\
from torch import nn

class Keep:
    def __init__(self):
        self.outs = []

    def on_batch_end(self, net, out=None, **rest):
        self.outs.append(@)

class Net:
    def __init__(self, body, rows, opt, callbacks):
        self.body = body
        self.rows = rows
        self.opt = opt
        self.callbacks = callbacks

    def notify(self, name, **rest):
        for callback in self.callbacks:
            getattr(callback, name)(self, **rest)

    def fit(self, epochs):
        for epoch in range(epochs):
            for x, y in self.rows:
                self.opt.zero_grad()
                out = self.body(x)
                loss = nn.functional.mse_loss(out, y)
                loss.backward()
                self.opt.step()
                self.notify('on_batch_end', out=out)

def main(net, rows, opt):
    Net(net, rows, opt, [Keep()]).fit(100)
";
    check_pair(text, "out.mean().item()", "out", LeakClass::GraphKeptInContainer);
    // A name that sounds like a model is no less of a proof.
    check_pair(&text.replace("body", "module"), "out.mean().item()", "out", LeakClass::GraphKeptInContainer);
}

#[test]
fn rows_of_a_file_in_a_data_set_with_workers() {
    let text = "\
import json
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self._rows = rows

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, number):
        return self._rows[number]

def loader(path):
    return DataLoader(Rows(json.load(open(path))), batch_size=8, num_workers=@)
";
    check_pair(text, "0", "4", LeakClass::WorkerCopyOnWrite);
}

#[test]
fn a_thread_that_fills_a_queue_for_a_loop_that_is_left() {
    let text = "\
import queue
import threading

class Feed:
    def __init__(self, rows):
        self.ready = queue.Queue(maxsize=4)
        self.thread = threading.Thread(target=self._fill, args=(rows,), daemon=True)
        self.thread.start()

    def _give(self, row):
        self.ready.put(row)

    def _fill(self, rows):
        for row in rows:
            self._give(row)
        self._give(None)

    def __iter__(self):
        while (row := self.ready.get()) is not None:
            yield row

def main(net, rows, opt, steps):
    for epoch in range(100):
        feed = Feed(rows)
        for step, row in enumerate(feed):
            if step >= steps:
                @
            opt.zero_grad()
            net(row).mean().backward()
            opt.step()
";
    check_pair(text, "continue", "break", LeakClass::ThreadNeverEnds);
}

#[test]
fn a_metaclass_that_remembers_every_object() {
    let text = "\
import torch

class Meta(type):
    def __init__(cls, name, bases, space):
        super().__init__(name, bases, space)
        cls.made = []

    def __call__(cls, *given, **named):
        one = super().__call__(*given, **named)
        one.serial = len(cls.made)
        MADE
        return one

class Stage(metaclass=Meta):
    def __init__(self, n):
        self.x = torch.randn(n, 64)
        self.y = self.label(self.x)

class Ring(Stage):
    def label(self, x):
        return (x.sum(1) > 0).long()

def main(model, opt, rounds):
    for number in range(rounds):
        stage = Ring(6000)
        for step in range(40):
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(stage.x), stage.y)
            loss.backward()
            opt.step()
";
    let found = |made: &str| alarms(&text.replace("MADE", made));
    let by_table = text.replace("cls.made = []", "cls.made = []\n        Meta.kinds[name.lower()] = cls");
    let by_table = by_table.replace("class Meta(type):", "class Meta(type):\n    kinds = {}\n");
    let by_table = by_table.replace("Ring(6000)", "Meta.kinds[\"ring\"](6000)");
    assert_eq!(alarms(&by_table.replace("MADE", "cls.made.append(one)")), [LeakClass::GlobalAccumulation]);
    assert_eq!(found("pass"), []);
    assert_eq!(found("cls.made.append(one.serial)"), []);
    assert_eq!(found("cls.made.append(one)"), [LeakClass::GlobalAccumulation]);
}

#[test]
fn a_metaclass_that_makes_one_object_of_each_class() {
    let text = "\
import torch

class Single(type):
    made = {}

    def __call__(cls, *given, **named):
        if cls not in cls.made:
            cls.made[cls] = super().__call__(*given, **named)
        return cls.made[cls]

class Bank(metaclass=Single):
    def __init__(self):
        self.rows = torch.zeros(1000, 64)

def main(model, opt, loader):
    for x, y in loader:
        bank = Bank()
        opt.zero_grad()
        loss = (model(x) - bank.rows).square().mean()
        loss.backward()
        opt.step()
";
    assert_eq!(alarms(text), []);
}

#[test]
fn a_list_that_grows_by_another_name_of_its_method() {
    let text = "\
from functools import partial

class Log:
    def __init__(self):
        self.rows = []

def fit(student, rows, rounds, opt):
    log = Log()
    for number in range(rounds):
        for x, y in rows:
            opt.zero_grad()
            loss = (student(x) - y).square().mean()
            loss.backward()
            opt.step()
            put = log.rows.append
            @
";
    for leaks in ["put(loss)", "partial(log.rows.append, loss)()", "getattr(log.rows, \"append\")(loss)"] {
        let quiet = leaks.replace("loss", "loss.item()");
        check_pair(text, &quiet, leaks, LeakClass::GraphKeptInContainer);
    }
}

#[test]
fn a_list_that_grows_by_a_slice() {
    let text = "\
def fit(student, rows, rounds, opt):
    kept = []
    for number in range(rounds):
        for x, y in rows:
            opt.zero_grad()
            loss = (student(x) - y).square().mean()
            loss.backward()
            opt.step()
            @
    return kept
";
    for leaks in ["kept[len(kept):] = [loss]", "kept[:] = [*kept, loss]"] {
        let quiet = leaks.replace("loss", "loss.item()");
        check_pair(text, &quiet, leaks, LeakClass::GraphKeptInContainer);
    }
    check_pair(text, "kept[:] = [loss]", "kept += [loss]", LeakClass::GraphKeptInContainer);
}

#[test]
fn a_hook_of_a_framework_that_a_class_takes_from_elsewhere() {
    let text = "\
import lightning as L

def note(self, trainer, module, outputs, batch, number):
    self.seen.append(@)

class Notes(L.Callback):
    def __init__(self):
        self.seen = []

    on_train_batch_end = note
";
    check_pair(
        text,
        "outputs[\"loss\"].item()",
        "outputs[\"loss\"].detach()",
        LeakClass::StepOutputsNotCleared,
    );
}

#[test]
fn a_step_that_is_counted_by_a_sum_is_a_new_key() {
    let text = "\
class Trainer:
    def __init__(self):
        self.by_step = {}

    def fit(self, student, criterion, opt, rows, rounds):
        step = 0
        for number in range(rounds):
            for x, y in rows:
                loss = criterion(student(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                step = step + 1
                self.by_step[@] = loss
";
    check_pair(text, "0", "step", LeakClass::GraphKeptInContainer);
}
