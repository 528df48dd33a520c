//! Which places the analysis of a program calls growing, and by what.

use caulk_python::program::Growth;
use caulk_python::{Analysis, Project, SourceFile};

/// Statements at which something grows, with the number of loops in which it does.
#[track_caller]
fn check(text: &str, expected: &[(&str, Growth, usize)]) {
    let file = SourceFile { path: "train.py".to_owned(), text: text.to_owned() };
    let analysis = Analysis::new(Project::new([file]));
    let found: Vec<_> = analysis
        .growths()
        .iter()
        .map(|fact| {
            let loops = fact.cases.iter().map(|case| case.duration.growing.len()).max().unwrap_or(0);
            (analysis.project().text(fact.statement).to_owned(), fact.how, loops)
        })
        .collect();
    let found: Vec<_> = found.iter().map(|(text, how, loops)| (text.as_str(), *how, *loops)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_variable_that_is_joined_with_more_grows_in_its_loops() {
    check(
        "import torch\n\
         def run(loader):\n    \
             kept = torch.zeros(0)\n    \
             for epoch in range(100):\n        \
                 for x in loader:\n            \
                     kept = torch.cat([kept, x])\n",
        &[("kept = torch.cat([kept, x])", Growth::Concatenate, 2)],
    );
}

#[test]
fn what_is_bound_anew_in_a_loop_grows_inside_of_it() {
    check(
        "def run(loader):\n    \
             for epoch in range(100):\n        \
                 kept = []\n        \
                 for x in loader:\n            \
                     kept = kept + [x]\n",
        &[("kept = kept + [x]", Growth::Concatenate, 1)],
    );
}

#[test]
fn what_is_cut_in_the_same_turn_does_not_grow() {
    check(
        "import torch\n\
         def run(loader):\n    \
             kept = torch.zeros(0)\n    \
             for x in loader:\n        \
                 kept = torch.cat([kept, x])\n        \
                 kept = kept[-100:]\n",
        &[("kept = torch.cat([kept, x])", Growth::Concatenate, 0)],
    );
}

#[test]
fn a_sum_is_no_growth() {
    check("def run(loader):\n    total = 0\n    for x in loader:\n        total = total + x\n", &[]);
}

#[test]
fn tables_and_dicts_are_joined() {
    check(
        "import pandas as pd\n\
         class Log:\n    \
             def __init__(self):\n        \
                 self.table = pd.DataFrame()\n        \
                 self.best = {}\n    \
             def add(self, row, key):\n        \
                 self.table = pd.concat([self.table, pd.DataFrame([row])]).reset_index()\n        \
                 self.best = {**self.best, key: row}\n\
         log = Log()\n\
         for row in open('rows'):\n    \
             log.add(row, row)\n",
        &[
            (
                "self.table = pd.concat([self.table, pd.DataFrame([row])]).reset_index()",
                Growth::Concatenate,
                1,
            ),
            ("self.best = {**self.best, key: row}", Growth::Concatenate, 1),
        ],
    );
}

#[test]
fn an_object_that_keeps_the_one_before_it_is_a_link() {
    let text = |last: &str| {
        format!(
            "class Node:\n    \
                 def __init__(self, value, before):\n        \
                     self.value = value\n        \
                     self.before = before\n\
             class Track:\n    \
                 def __init__(self):\n        \
                     self.last = None\n    \
                 def add(self, x):\n        \
                     old = self.last\n        \
                     {last}\n\
             def run(loader):\n    \
                 track = Track()\n    \
                 for x in loader:\n        \
                     track.add(x)\n\
             run(open('rows'))\n"
        )
    };
    for link in [
        "self.last = Node(x, self.last)",
        "self.last = Node(x, old)",
        "setattr(self, 'last', Node(x, getattr(self, 'last')))",
        "self.last = (x, old)",
        "self.last = {'value': x, 'before': old}",
    ] {
        check(&text(link), &[(link, Growth::Link, 1)]);
    }
    // Only a number of it is kept.
    check(&text("self.last = Node(x, old.value)"), &[]);
    check(&text("self.last = Node(x, Node(x, None))"), &[]);
}
