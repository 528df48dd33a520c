//! Objects of libraries that keep their arguments, each beside the same program with a release.

use caulk_core::LeakClass;

use crate::caution::{alarms, check_pair};

#[test]
fn a_graph_of_a_library_whose_nodes_hold_arrays() {
    let text = "\
import networkx as nx
import torch

class Planner:
    def __init__(self, net):
        self.net, self.tree, self.serial = net, nx.DiGraph(), 0

    def expand(self, planes):
        self.serial += 1
        with torch.no_grad():
            prior = self.net(planes).softmax(-1)
        self.tree.add_node(self.serial, prior=prior, planes=planes)
        return self.serial

    def plan(self, maze):
        @
        for _ in range(200):
            self.expand(torch.rand(3, 64, 64))

def main(net, mazes):
    planner = Planner(net)
    for iteration in range(100):
        for maze in mazes:
            planner.plan(maze)
";
    check_pair(text, "self.tree.clear()", "pass", LeakClass::UnboundedHistory);
}

#[test]
fn models_that_are_prepared_in_every_trial() {
    let text = "\
import torch
from accelerate import Accelerator

def main(loader, widths):
    accelerator = Accelerator()
    for width in widths:
        model = torch.nn.Linear(width, 1)
        optimizer = torch.optim.Adam(model.parameters())
        model, optimizer = accelerator.prepare(model, optimizer)
        for a, b in loader:
            optimizer.zero_grad()
            loss = (model(a) - b).square().mean()
            accelerator.backward(loss)
            optimizer.step()
        @
";
    check_pair(text, "accelerator.free_memory()", "print(width)", LeakClass::OptimizerRecreated);
}

#[test]
fn vectors_in_an_index_of_a_search_library() {
    let text = "\
import faiss
import torch

def main(encoder, optimizer, loader, epochs):
    index = faiss.IndexFlatL2(128)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            z = encoder(x)
            loss = (z - y).square().mean()
            loss.backward()
            optimizer.step()
            index.add(z.detach().numpy())
        distances, found = index.search(y.numpy(), 5)
        @
";
    check_pair(text, "index.reset()", "print(found)", LeakClass::UnboundedHistory);
}

#[test]
fn an_index_that_an_object_makes_when_it_is_first_asked_for() {
    let text = "\
import faiss
import torch

class Search:
    def __init__(self):
        self.index = None

    def add(self, rows):
        if self.index is None:
            self.index = faiss.IndexFlatIP(64)
        self.index.add(rows)

def main(encoder, optimizer, loader, epochs):
    OUTSIDE
    for epoch in range(epochs):
        INSIDE
        for x, y in loader:
            optimizer.zero_grad()
            z = encoder(x)
            loss = (z - y).square().mean()
            loss.backward()
            optimizer.step()
        search.add(z.detach())
";
    let text = |outside: &str, inside: &str| text.replace("OUTSIDE", outside).replace("INSIDE", inside);
    assert_eq!(alarms(&text("pass", "search = Search()")), []);
    assert_eq!(alarms(&text("search = Search()", "pass")), [LeakClass::UnboundedHistory]);
}

#[test]
fn a_pickler_that_remembers_what_it_wrote() {
    let text = "\
import pickle
import torch

def main(model, optimizer, loader, out, epochs):
    pickler = pickle.Pickler(out)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = (output - y).square().mean()
            loss.backward()
            optimizer.step()
            pickler.dump(output.detach().numpy())
            @
";
    check_pair(text, "pickler.clear_memo()", "pass", LeakClass::UnboundedHistory);
}

#[test]
fn arguments_of_finalizers_of_what_stays() {
    let text = "\
import weakref
import torch

class Cloud:
    def __init__(self, owner, n):
        self.points = torch.rand(n, 2)
        self.scratch = torch.zeros(1600, n)
        weakref.finalize(@)

    @staticmethod
    def released(scratch):
        print(scratch)

def train(opt, rounds):
    net = torch.nn.Linear(2, 1)
    for number in range(rounds):
        cloud = Cloud(net, 768)
        for step in range(40):
            opt.zero_grad()
            loss = net(cloud.points).square().mean()
            loss.backward()
            opt.step()
";
    let text = text.replace("    @staticmethod\n", "    STATIC\n");
    let check = |given: &str| alarms(&text.replace('@', given).replace("STATIC", "@staticmethod"));
    assert_eq!(check("self, Cloud.released, n"), []);
    assert_eq!(check("owner, Cloud.released, n"), []);
    assert_eq!(check("self, Cloud.released, self.scratch"), []);
    assert_eq!(check("owner, Cloud.released, self.scratch"), [LeakClass::HookNeverRemoved]);
}
