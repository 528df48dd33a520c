//! Programs that look like leaks and are none, each beside one that is: caution must not cost what is found.

use caulk_core::{LeakClass, Severity};
use caulk_python::{Analysis, Project, SourceFile};
use caulk_rules::{RULES, check};

/// Classes of the findings that claim harm.
pub(crate) fn alarms(text: &str) -> Vec<LeakClass> {
    let file = SourceFile { path: "a.py".into(), text: text.into() };
    let analysis = Analysis::new(Project::new([file]));
    assert!(analysis.problems().is_empty(), "{:?}", analysis.problems());
    let found = check(&analysis, RULES).into_iter().filter(|found| found.severity > Severity::Info);
    found.map(|found| found.class).collect()
}

pub(crate) fn check_pair(text: &str, quiet: &str, leaks: &str, class: LeakClass) {
    assert!(text.contains('@'), "a place for what differs");
    assert_eq!(alarms(&text.replace('@', quiet)), [], "{quiet}");
    assert!(alarms(&text.replace('@', leaks)).contains(&class), "{leaks}");
}

#[test]
fn names_of_loaders_are_no_loaders() {
    let text = "\
from torch.utils.tensorboard import SummaryWriter

def main(loader_names, train_loader):
    boards = []
    for one in @:
        boards.append(SummaryWriter(f\"runs/{one}\"))
    return boards
";
    check_pair(text, "loader_names", "train_loader", LeakClass::FileHandlesGrow);
}

#[test]
fn a_figure_that_is_made_when_it_is_first_asked_for() {
    let text = "\
import matplotlib.pyplot as plt

class Monitor:
    def __init__(self):
        self.canvas = None

    def show(self, picture):
        if @:
            self.canvas = plt.figure()
        plt.imshow(picture)

def main(camera):
    monitor = Monitor()
    while True:
        monitor.show(camera.read())
";
    check_pair(text, "not self.canvas", "picture", LeakClass::FigureNotClosed);
}

#[test]
fn a_path_and_its_label_for_each_sample_are_few_objects() {
    let text = "\
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __init__(self, lines):
        self.rows = []
        for line in lines:
            path, label = line.split()
            self.rows.append(@)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

def main(lines):
    return DataLoader(Pictures(lines), num_workers=4)
";
    check_pair(text, "(path, label)", "{\"path\": path, \"label\": label}", LeakClass::WorkerCopyOnWrite);
    check_pair(text, "(path, label)", "(path, (label, len(path)))", LeakClass::WorkerCopyOnWrite);
}

#[test]
fn one_setting_switches_the_collector_off_and_collects() {
    let text = "\
import gc

import torch

class Node:
    def __init__(self):
        self.values = torch.zeros(8)
        self.parent = None
        self.children = []

    def add(self, child):
        child.parent = self
        self.children.append(child)

def train(model, loader, epochs, fast):
    if fast:
        gc.disable()
    for epoch in range(epochs):
        for x, y in loader:
            root = Node()
            root.add(Node())
            model(x + root.children[0].values)
        if fast:
            @
";
    check_pair(text, "gc.collect()", "print(epoch)", LeakClass::ReferenceCycle);
}

#[test]
fn a_cached_property_makes_one_writer() {
    let text = "\
from functools import cached_property
from torch.utils.tensorboard import SummaryWriter

class Log:
    def __init__(self, place):
        self.place = place

    @
    def board(self):
        return SummaryWriter(self.place)

    def put(self, step, value):
        self.board.add_scalar(\"loss\", value, step)

def main(model, loader, optimizer):
    log = Log(\"runs\")
    for epoch in range(20):
        for step, (x, y) in enumerate(loader):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.put(step, loss.item())
";
    let property = text.replace("    @\n", "    %\n");
    assert_eq!(alarms(&property.replace('%', "@cached_property")), []);
    assert!(alarms(&property.replace('%', "@property")).contains(&LeakClass::FileHandlesGrow));
}

#[test]
fn recording_is_off_where_a_stack_of_contexts_says_so() {
    let text = "\
import torch
from contextlib import ExitStack

def judge(model, loader):
    kept = []
    with ExitStack() as contexts:
        @
        for x, _ in loader:
            kept.append(model(x))
    return kept

def main(model, loader, test_loader, optimizer):
    model = torch.nn.Linear(4, 4)
    history = []
    for epoch in range(20):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.append(judge(model, test_loader))
";
    let of = |context: &str| alarms(&text.replace('@', context));
    let leaks = of("contexts.enter_context(open('log.txt'))");
    assert!(leaks.contains(&LeakClass::GraphKeptInContainer), "{leaks:?}");
    let quiet = of("contexts.enter_context(torch.inference_mode())");
    assert!(!quiet.contains(&LeakClass::GraphKeptInContainer), "{quiet:?}");
}

#[test]
fn what_a_switch_of_this_call_detaches_has_no_graph() {
    let text = "\
import torch
from torch import nn

def pieces(net, x, learn):
    found = []
    for start in range(0, len(x), 8):
        part = net(x[start : start + 8]).mean()
        if learn:
            part.backward()
            part = part.detach()
        found.append(part)
    return found

def main(loader, optimizer):
    net = nn.Linear(4, 1)
    totals = []
    for epoch in range(10):
        for x in loader:
            optimizer.zero_grad()
            totals.append(pieces(net, x, @))
            optimizer.step()
";
    let of = |on: &str| alarms(&text.replace('@', on)).contains(&LeakClass::GraphKeptInContainer);
    assert!(!of("True") && of("False"));
}

#[test]
fn a_part_that_asks_whether_gradients_are_on_records_none_otherwise() {
    let text = "\
import torch
from torch import nn

class Probe:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.seen = []

    def look(self, x):
        if @:
            return
        self.seen.append(self.net(x))

def main(loader, optimizer):
    probe = Probe()
    for epoch in range(10):
        for x in loader:
            loss = probe.net(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            probe.look(x)
";
    let of = |test: &str| alarms(&text.replace('@', test)).contains(&LeakClass::GraphKeptInContainer);
    assert!(!of("torch.is_grad_enabled()") && of("not torch.is_grad_enabled()"));
}

#[test]
fn values_of_a_reduction_are_no_views() {
    let text = "\
import torch

tops = []

def main():
    while True:
        images = torch.rand(64, 3, 56, 56)
        tops.append(@)
";
    let of = |part: &str| alarms(&text.replace('@', part)).contains(&LeakClass::ViewPinsStorage);
    assert!(!of("images.max(1)[0]") && !of("torch.topk(images, 5)[1]"));
    assert!(of("images[0]") && of("images.sort(dim=2).values[0]"));
}

#[test]
fn one_number_of_a_row_is_no_view() {
    let text = "\
import numpy as np

kept = []

def main():
    while True:
        table = np.zeros(@)
        kept.append(table[0])
";
    let of = |shape: &str| alarms(&text.replace('@', shape)).contains(&LeakClass::ViewPinsStorage);
    assert!(!of("5000") && of("(5000, 5000)"));
}

#[test]
fn a_hook_on_a_tensor_of_the_same_call_goes_with_it() {
    let text = "\
import torch

def again(grad):
    return grad

class Late(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        loss = self.net(x).mean()
        loss.backward()
        loss = loss.detach().requires_grad_()
        @.register_hook(again)
        return loss

def main(net, loader, optimizer):
    late = Late(net)
    for epoch in range(10):
        for x in loader:
            optimizer.zero_grad()
            late(x).backward()
            optimizer.step()
";
    check_pair(text, "loss", "self.scale", LeakClass::HookNeverRemoved);
}

#[test]
fn a_table_with_an_entry_for_each_class_is_small() {
    let text = "\
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __init__(self, rows, kinds):
        self.rows = rows
        self.table = {}
        for number, kind in enumerate(kinds):
            self.table[kind] = {\"number\": number, \"kind\": kind}

    def __len__(self):
        return len(self.@)

    def __getitem__(self, index):
        return self.table[self.rows.label(index)]

def main(rows, kinds):
    return DataLoader(Pictures(rows, kinds), num_workers=4)
";
    check_pair(text, "rows", "table", LeakClass::WorkerCopyOnWrite);
}

#[test]
fn tensors_of_another_framework_have_no_graph_of_torch() {
    let text = "\
@

def run(net, loader, trainer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(net(x), y).mean()
        loss.backward()
        total += loss
        trainer.step(1)
    return total

def main(net, loader, trainer, criterion, epochs):
    for epoch in range(epochs):
        print(run(net, loader, trainer, criterion))
";
    check_pair(text, "import mxnet as mx", "import torch", LeakClass::LossKeptWithGraph);
}

#[test]
fn the_other_side_of_a_question_for_item_is_no_tensor() {
    let text = "\
from torch import nn

def main(model, loader, optimizer, extra):
    for epoch in range(10):
        total = 0
        for x, y in loader:
            parts = {\"a\": nn.functional.mse_loss(model(x), y)}
            optimizer.zero_grad()
            parts[\"a\"].backward()
            optimizer.step()
            total += @
        print(total)
";
    let quiet = "parts[\"a\"].item() if hasattr(parts[\"a\"], \"item\") else parts[\"a\"]";
    check_pair(text, quiet, "parts[\"a\"]", LeakClass::LossKeptWithGraph);
}

#[test]
fn a_state_that_is_made_without_recording_is_no_chain() {
    let cell = "\
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 4)

    def forward(self, x, state):
        out, state = self.cell(x, state)
        return out, state

def main(loader, optimizer):
    cell = Cell()
    state = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
    for epoch in range(10):
        for x in loader:
            start = (state[0].clone(), state[1].clone())
            @
            out, _ = cell(x, start)
            loss = out.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
";
    let off = "with torch.no_grad():\n                out, state = cell(x, state)";
    let found = alarms(&cell.replace('@', off));
    assert!(
        !found.contains(&LeakClass::StateNotDetached) && !found.contains(&LeakClass::LossKeptWithGraph),
        "{found:?}"
    );
    let found = alarms(&cell.replace('@', "out, state = cell(x, state)"));
    assert!(
        found.contains(&LeakClass::StateNotDetached) || found.contains(&LeakClass::LossKeptWithGraph),
        "{found:?}"
    );
}

#[test]
fn an_inner_function_fills_what_each_call_of_the_outer_makes() {
    let text = "\
def step(net, rows, opt, tasks, total):
    found = []
    def one(task):
        out = net(rows[task])
        out.mean().backward()
        @.append(out.detach())
    for task in tasks:
        one(task)
    opt.step()
    return len(found)

class Kept:
    def __init__(self):
        self.all = []

def main(net, loader, opt, tasks):
    kept = Kept()
    for epoch in range(100):
        for rows in loader:
            opt.zero_grad()
            step(net, rows, opt, tasks, kept)
";
    check_pair(text, "found", "total.all", LeakClass::UnboundedHistory);
}

#[test]
fn a_default_that_is_made_for_the_function_that_is_defined() {
    let text = "\
def look(model, rows):
    for row in rows:
        found = []
        def hook(module, given, out, kept=found):
            kept.append(out.detach())
        handle = model.register_forward_hook(hook)
        model(row)
        handle.remove()
        print(len(found))
";
    assert_eq!(alarms(text), []);
}

#[test]
fn what_stands_in_an_archive_is_no_view() {
    let text = "\
import numpy as np

class Rows:
    def __init__(self):
        self.kept = []

    def add(self, path):
        archive = np.load(path)
        for number in range(100):
            self.kept.append(archive[@])

def main(paths, model, opt):
    rows = Rows()
    for epoch in range(100):
        for path in paths:
            rows.add(path)
            model(rows).mean().backward()
            opt.step()
";
    let of = |key: &str| alarms(&text.replace('@', key)).contains(&LeakClass::ViewPinsStorage);
    assert!(!of("f'arr_{number}'") && of(":4"));
}

#[test]
fn a_hook_on_the_parameter_of_the_module_that_registers_it() {
    let text = "\
from torch import nn

class Layer(nn.Module):
    def __init__(self, weight, shared):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.shared = shared
        self.@.register_hook(lambda grad: grad / 2)

def main(loader, opt, weight):
    shared = nn.Parameter(weight)
    for epoch in range(100):
        layer = Layer(weight, shared)
        for x in loader:
            opt.zero_grad()
            layer(x).mean().backward()
            opt.step()
";
    check_pair(text, "weight", "shared", LeakClass::HookNeverRemoved);
}

#[test]
fn rows_of_an_evaluation_that_the_trainer_takes_out_again() {
    let text = "\
from transformers import Trainer

class Mine(Trainer):
    def __init__(self, **rest):
        super().__init__(**rest)
        self.kept = {}

    def prediction_step(self, model, inputs, only_loss, ignore_keys=None):
        loss, logits, labels = super().prediction_step(model, inputs, False, ignore_keys)
        rows = self.kept.setdefault(self.state.global_step, [])
        rows.append((logits.softmax(-1), labels))
        return loss, None, None

    def evaluate(self, *args, **rest):
        metrics = super().evaluate(*args, **rest)
        rows = self.kept.@(self.state.global_step, [])
        metrics['rows'] = len(rows)
        return metrics
";
    assert_eq!(alarms(&text.replace('@', "pop")), []);
    assert_ne!(alarms(&text.replace('@', "get")), []);
}

#[test]
fn a_decorator_that_hands_on_changes_nothing() {
    let text = "\
from functools import wraps

def noted(function):
    @wraps(function)
    def inner(*words, **settings):
        return function(*words, **settings)
    return inner

@noted
def look(model, criterion, x, y, times):
    for number in range(%):
        criterion(model(x), y).backward(create_graph=True)
        for weight in model.parameters():
            weight.grad.zero_()
";
    assert_eq!(alarms(&text.replace('%', "1")), []);
    assert!(alarms(&text.replace('%', "100")).contains(&LeakClass::GraphRetained));
}

#[test]
fn a_while_that_goes_through_a_few_parts() {
    let text = "\
def watch(model, hook):
    parts = iter(@)
    while True:
        try:
            part = next(parts)
        except StopIteration:
            break
        part.register_forward_hook(hook)
";
    assert_eq!(alarms(&text.replace('@', "model.modules()")), []);
}

#[test]
fn a_list_inside_another_goes_with_the_object_that_has_it() {
    let text = "\
class Rows:
    def __init__(self):
        self.rows = @

    def add(self, noise):
        for row in noise.sigmoid().detach():
            self.rows[\"all\"].append(row)

def main(loader, epochs):
    rows = Rows()
    for epoch in range(epochs):
        for noise, _ in loader:
            rows.add(noise)
";
    assert_eq!(alarms(&text.replace('@', "{\"all\": []}")), []);
}

#[test]
fn an_object_that_is_made_anew_takes_its_lists_along() {
    let text = "\
import lightning as L
from torch import nn

class Ledger:
    def __init__(self):
        self.rows = []

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.ledger = Ledger()

    def on_train_epoch_start(self):
        @

    def training_step(self, batch, number):
        out = self.net(batch)
        self.ledger.rows.append(out.detach())
        return nn.functional.mse_loss(out, batch)
";
    check_pair(text, "self.ledger = Ledger()", "pass", LeakClass::UnboundedHistory);
}

#[test]
fn a_thread_is_told_to_end_through_a_function() {
    let text = "\
import queue
import threading

def work(tasks):
    while True:
        task = tasks.get()
        if task is None:
            break
        print(task)

def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        tasks = queue.Queue(8)

        def hand_over(thing):
            tasks.put(thing)

        thread = threading.Thread(target=work, args=(tasks,))
        thread.start()
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        hand_over(@)
";
    check_pair(text, "None", "1", LeakClass::ThreadNeverEnds);
}
