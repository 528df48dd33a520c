//! Leaks as strangers write them, in words that no rule knows, each beside the same program without the leak.

use caulk_core::LeakClass;

use crate::caution::check_pair;

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
