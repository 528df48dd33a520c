use caulk_core::wire::ContainerKind;
use caulk_core::{Grower, Grows, Rate, Settled, Site, SiteRole, VerdictUnit, Why};

use super::*;

const METER: &str = "\
class Meter:
    def __init__(self, window=20):
        self.window = window
        self.values = []

    def add(self, value):
        self.values.append(value)

    def mean(self):
        return sum(self.values[-self.window :])


meter = Meter()
for epoch in range(9):
    meter.add(epoch)
    print(meter.mean())
";

/// The sources with each alternative for a finding at a line.
fn edited(class: LeakClass, text: &str, line: u32, function: &str) -> Vec<String> {
    let texts = Texts::from([("m.py".to_owned(), text.to_owned())]);
    let site = Site {
        role: SiteRole::Grows,
        file: "m.py".into(),
        line,
        end_line: line,
        column: 1,
        function: function.into(),
        text: String::new(),
        cell: None,
    };
    let finding = Finding::new(Settled { sites: vec![site], ..Settled::of(class) });
    let apply = |fix: &Fix| {
        let edits: Vec<_> = fix.edits.iter().collect();
        caulk_check::edited(&texts, &edits).map(|mut changed| changed.remove("m.py").unwrap_or_default())
    };
    alternatives(&finding, &texts).iter().filter_map(apply).collect()
}

#[test]
fn a_history_is_cut_to_the_length_that_is_read_or_emptied_where_a_loop_ends() {
    let all = edited(LeakClass::UnboundedHistory, METER, 7, "Meter.add");
    let cut = "        self.values.append(value)\n        del self.values[:-self.window]\n";
    let emptied = "    print(meter.mean())\n    meter.values.clear()\n";
    assert!(all[0].contains(cut), "{}", all[0]);
    assert!(all.iter().any(|text| text.contains(emptied)), "{all:#?}");
    assert!(!all.iter().any(|text| text.contains(".append(value.detach())")));
}

#[test]
fn what_is_read_from_the_end_alone_is_cut_there() {
    let text = "rows = []\nfor epoch in range(9):\n    rows.append(epoch)\n    print(rows[-1], rows[-2])\n";
    let all = edited(LeakClass::GlobalAccumulation, text, 3, "<module>");
    assert!(all[0].contains("    rows.append(epoch)\n    del rows[:-2]\n"), "{all:#?}");
}

#[test]
fn a_container_is_emptied_once_another_function_has_used_it() {
    let text = "class Net:\n    def step(self, loss):\n        self.outs.append({'loss': loss})\n\n    \
                    def end(self):\n        return sum(self.outs)\n";
    let all = edited(LeakClass::StepOutputsNotCleared, text, 3, "Net.step");
    let emptied = "        result = sum(self.outs)\n        self.outs.clear()\n        return result\n";
    assert!(all.iter().any(|text| text.contains(emptied)), "{all:#?}");
    let all = edited(LeakClass::GraphKeptInContainer, text, 3, "Net.step");
    assert!(all[0].contains("{'loss': loss.detach()}"), "{all:#?}");
}

#[test]
fn graphs_go_first_where_graphs_are_kept() {
    let all = edited(LeakClass::GraphKeptInContainer, METER, 7, "Meter.add");
    assert!(all[0].contains("value.detach()"), "{}", all[0]);
    assert!(all.iter().any(|text| text.contains("float(value)")));
}

#[test]
fn a_hook_is_removed_and_a_file_closed_where_the_loop_ends() {
    let hook = "for epoch in range(9):\n    model.register_forward_hook(print)\n    train(model)\n";
    let all = edited(LeakClass::HookNeverRemoved, hook, 2, "<module>");
    let expected = "    handle = model.register_forward_hook(print)\n    train(model)\n    handle.remove()\n";
    assert!(all.iter().any(|text| text.contains(expected)), "{all:#?}");
    let file = "def save(at):\n    log = open(at)\n    logs.append(log)\n    return at\n";
    let all = edited(LeakClass::HookNeverRemoved, file, 2, "save");
    assert!(all.iter().any(|text| text.contains("    log.close()\n    return at\n")), "{all:#?}");
}

/// The one edit of these with a text in it.
fn with(all: &[String], part: &str) -> String {
    all.iter()
        .find(|text| text.contains(part))
        .cloned()
        .unwrap_or_else(|| panic!("`{part}` is in none of {all:#?}"))
}

#[test]
fn what_is_joined_is_cut_to_a_size_that_the_program_names() {
    let bank = "\
import torch

class Queue:
    def __init__(self, queue_size=64):
        self.queue_size = queue_size
        self.bank = torch.zeros(0, 8)

    def add(self, keys):
        self.bank = torch.cat([self.bank, keys])
";
    let all = edited(LeakClass::UnboundedHistory, bank, 9, "Queue.add");
    with(&all, "self.bank = torch.cat([self.bank, keys])[-self.queue_size:]\n");
    with(&all, "self.bank = torch.cat([self.bank, keys])[-len(keys):]\n");
    let newest_first = bank.replace("[self.bank, keys]", "[keys, self.bank], dim=1");
    let all = edited(LeakClass::UnboundedHistory, &newest_first, 9, "Queue.add");
    with(&all, "torch.cat([keys, self.bank], dim=1)[:, :self.queue_size]\n");
}

#[test]
fn a_resource_stands_in_a_with_statement_around_what_uses_it() {
    let text = "\
def read(paths):
    for path in paths:
        log = open(path)
        # The first line is a header.
        log.readline()
        for line in log:
            print(line)
        print(path)
";
    let all = edited(LeakClass::FileHandlesGrow, text, 3, "read");
    let expected = "\
        with open(path) as log:
            # The first line is a header.
            log.readline()
            for line in log:
                print(line)
        print(path)
";
    with(&all, expected);
    with(&all, "        print(path)\n        log.close()\n");
}

#[test]
fn an_entry_leaves_when_its_turn_is_over() {
    let text = "\
pending = {}
for job in jobs:
    pending[job.name] = job
    work(job)
";
    let all = edited(LeakClass::UnboundedCache, text, 3, "<module>");
    with(&all, "    work(job)\n    pending.pop(job.name, None)\n");
    with(&all, "    while len(pending) > 128:\n        pending.pop(next(iter(pending)))\n");
    let pair = text.replace("pending[job.name]", "pending[job.name, job.part]");
    let all = edited(LeakClass::UnboundedCache, &pair, 3, "<module>");
    with(&all, "    work(job)\n    pending.pop((job.name, job.part), None)\n");
    let nested = text.replace("pending[job.name]", "pending[(job.name, 1), job.part]");
    let all = edited(LeakClass::UnboundedCache, &nested, 3, "<module>");
    with(&all, "    work(job)\n    pending.pop(((job.name, 1), job.part), None)\n");
    for call in ["random.random()", "jobs.popleft()", "count[0]()"] {
        let anew = text.replace("job.name", call);
        let all = edited(LeakClass::UnboundedCache, &anew, 3, "<module>");
        assert!(!all.iter().any(|text| text.contains(&format!("pop({call}"))), "{all:#?}");
    }
    let number = text.replace("job.name", "int(job.timestep)");
    with(&edited(LeakClass::UnboundedCache, &number, 3, "<module>"), "pending.pop(int(job.timestep), None)");
}

#[test]
fn a_callback_is_no_tensor() {
    let text = "\
for job in jobs:
    later.append(report)
";
    let all = edited(LeakClass::CallbackKeepsTensor, text, 2, "<module>");
    assert!(!all.iter().any(|text| text.contains("detach") || text.contains("float")), "{all:#?}");
}

#[test]
fn what_does_not_depend_on_the_turn_is_made_before_the_loop() {
    let text = "\
for epoch in range(9):
    model.register_forward_hook(print)
    train(model)
";
    let all = edited(LeakClass::HookNeverRemoved, text, 2, "<module>");
    with(&all, "model.register_forward_hook(print)\nfor epoch in range(9):\n    train(model)\n");
    let depends = text.replace("(print)", "(hooks[epoch])");
    let all = edited(LeakClass::HookNeverRemoved, &depends, 2, "<module>");
    assert!(!all.iter().any(|text| text.starts_with("model")), "{all:#?}");
}

#[test]
fn code_without_a_backward_pass_runs_without_graphs() {
    let text = "\
import torch

def fit(model, loader, val):
    for epoch in range(9):
        for batch in loader:
            model(batch).sum().backward()
        for batch in val:
            scores.append(model(batch))
";
    let all = edited(LeakClass::EvaluationWithGrad, text, 8, "fit");
    let around = "\
        with torch.no_grad():
            for batch in val:
                scores.append(model(batch))
";
    with(&all, around);
    assert!(!all.iter().any(|text| text.contains("@torch.no_grad()")), "the function trains: {all:#?}");
    let split = "\
scores = []

def keep(score):
    scores.append(score)

def validate(model, val):
    for batch in val:
        keep(model(batch))
";
    let all = edited(LeakClass::GraphKeptInContainer, split, 4, "keep");
    with(&all, "import torch\nscores = []\n\n@torch.no_grad()\ndef keep(score):");
    with(&all, "@torch.no_grad()\ndef validate(model, val):");
}

#[test]
fn workers_get_an_array_instead_of_a_list() {
    let text = "\
class Data:
    def __init__(self, count):
        self.rows = [(number, str(number)) for number in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        number, name = self.rows[index]
        return number
";
    let all = edited(LeakClass::WorkerCopyOnWrite, text, 3, "Data.__init__");
    with(&all, "self.rows = np.array([(number, str(number)) for number in range(count)])\n");
    let packed = with(&all, "pickle.dumps");
    for part in [
        "import numpy as np\n",
        "import pickle\n",
        "self.rows = np.array([pickle.dumps(entry) for entry in [(number, str(number)) for number in range(count)]])\n",
        "number, name = pickle.loads(self.rows[index])\n",
    ] {
        assert!(packed.contains(part), "{packed}");
    }
    assert!(
        !edited(LeakClass::UnboundedHistory, text, 3, "Data.__init__")
            .iter()
            .any(|text| text.contains("array"))
    );
}

#[test]
fn an_object_of_a_library_is_emptied_by_its_own_method() {
    let text = "\
from torchmetrics.classification import BinaryAUROC

curve = BinaryAUROC()
for epoch in range(9):
    for scores, labels in loader:
        curve.update(scores, labels)
    print(curve.compute())
";
    let all = edited(LeakClass::UnboundedHistory, text, 6, "<module>");
    with(&all, "    print(curve.compute())\n    curve.reset()\n");
}

#[test]
fn what_a_loop_makes_is_closed_by_the_method_of_its_class() {
    let text = "class Probe:\n    def __init__(self, layers):\n        self.handles = []\n        for layer in layers:\n            \
                self.handles.append(layer.register_forward_hook(print))\n\n    def close(self):\n        \
                for handle in self.handles:\n            handle.remove()\n\n\nfor epoch in range(9):\n    \
                probe = Probe(layers)\n    train()\n";
    let all = edited(LeakClass::HookNeverRemoved, text, 5, "Probe.__init__");
    assert!(all.iter().any(|text| text.ends_with("    train()\n    probe.close()\n")), "{all:#?}");
    let closed = text.replace("    train()\n", "    train()\n    probe.close()\n");
    let all = edited(LeakClass::HookNeverRemoved, &closed, 5, "Probe.__init__");
    assert!(!all.iter().any(|text| text.matches("probe.close()").count() > 1), "{all:#?}");
}

#[test]
fn a_queue_gets_a_bound_and_is_neither_emptied_nor_given_numbers() {
    let text = "import queue\n\nrows = queue.Queue()\n\n\ndef train():\n    for step in range(9):\n        rows.put(step)\n";
    let all = edited(LeakClass::UnboundedQueue, text, 8, "train");
    assert!(all[0].contains("rows = queue.Queue(maxsize=16)\n"), "{all:#?}");
    assert!(!all.iter().any(|text| text.contains("clear()") || text.contains("float(")), "{all:#?}");
}

#[test]
fn a_cycle_begins_again_and_the_collector_stays_on() {
    let text = "import gc\nimport itertools\n\ngc.disable()\nrows = itertools.cycle(Rows())\nfor epoch in range(9):\n    \
                for one, row in zip(labels, rows):\n        train(one, row)\n";
    let all = edited(LeakClass::UnboundedHistory, text, 7, "<module>");
    let again = "rows = (item for _ in itertools.count() for item in Rows())\n";
    assert!(all.iter().any(|text| text.contains(again)), "{all:#?}");
    assert!(all.iter().all(|text| text.contains("gc.disable()")), "{all:#?}");
    let all = edited(LeakClass::ReferenceCycle, text, 7, "<module>");
    assert!(!all[0].contains("gc.disable()"), "{all:#?}");
}

#[test]
fn what_nothing_reads_is_not_kept() {
    let text = "\
import copy

class Average:
    def __init__(self):
        self.members = []

    def add(self, model):
        self.members.append(copy.deepcopy(model))
";
    let all = edited(LeakClass::UnboundedHistory, text, 8, "Average.add");
    assert!(all[0].contains("    def add(self, model):\n        copy.deepcopy(model)\n"), "{all:#?}");
    let read = format!("{text}\n    def count(self):\n        return len(self.members)\n");
    let all = edited(LeakClass::UnboundedHistory, &read, 8, "Average.add");
    assert!(!all.iter().any(|text| text.contains("        copy.deepcopy(model)\n")), "{all:#?}");
    let keyed =
        "seen = {}\nfor epoch in range(9):\n    rows = epoch\n    seen[draw()] = rows\n    step(rows)\n";
    let all = edited(LeakClass::GlobalAccumulation, keyed, 4, "<module>");
    assert!(all[0].contains("    rows = epoch\n    draw()\n    step(rows)\n"), "{all:#?}");
    let set = "def run(self, number, value):\n    setattr(self, f'seen_{number}', value)\n";
    let all = edited(LeakClass::UnboundedHistory, set, 2, "run");
    assert!(with(&all, "pass").contains("def run(self, number, value):\n    pass\n"), "{all:#?}");
    let looked_up = format!("{set}    return getattr(self, f'seen_{{number - 1}}')\n");
    let all = edited(LeakClass::UnboundedHistory, &looked_up, 2, "run");
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn another_file_may_read_what_one_fills() {
    let filled = "rows = []\ndef add(row):\n    rows.append(row)\n";
    let site = Site {
        role: SiteRole::Grows,
        file: "m.py".into(),
        line: 3,
        end_line: 3,
        column: 1,
        function: "add".into(),
        text: String::new(),
        cell: None,
    };
    let finding = Finding::new(Settled {
        sites: vec![site],
        container: "rows".into(),
        ..Settled::of(LeakClass::GlobalAccumulation)
    });
    let drops = |texts: &Texts| {
        alternatives(&finding, texts).iter().any(|fix| fix.description.starts_with("Nothing reads"))
    };
    let mut texts = Texts::from([("m.py".to_owned(), filled.to_owned())]);
    assert!(drops(&texts));
    texts.insert("other.py".to_owned(), "import m\nprint(len(m.rows))\n".to_owned());
    assert!(!drops(&texts));
}

#[test]
fn a_chain_is_cut_behind_the_one_before() {
    let text = "\
class Step:
    def __init__(self, before):
        self.before = before

class Agent:
    def act(self):
        self.latest = Step(self.latest)
        return 1
";
    let site = Site {
        role: SiteRole::Grows,
        file: "m.py".into(),
        line: 7,
        end_line: 7,
        column: 1,
        function: "Agent.act".into(),
        text: String::new(),
        cell: None,
    };
    let texts = Texts::from([("m.py".to_owned(), text.to_owned())]);
    let finding = |link: &str| {
        let grows = Grows {
            class: LeakClass::UnboundedHistory,
            grower: Grower::Kind(ContainerKind::Chain),
            container: "self.latest".into(),
            link: Some(link.into()),
            others: 0,
            rate: Rate::new(1.0, VerdictUnit::Epoch),
            elements: 1.0,
            why: Why::Class,
        };
        Finding::new(Settled {
            sites: vec![site.clone()],
            cause: Cause::Grows(grows),
            ..Settled::of(LeakClass::UnboundedHistory)
        })
    };
    let cuts = |link: &str| {
        let all = alternatives(&finding(link), &texts);
        all.iter().find(|fix| fix.description.starts_with("Keep the one before")).cloned()
    };
    let fix = cuts("before").expect("an edit");
    let edits: Vec<_> = fix.edits.iter().collect();
    let changed = caulk_check::edited(&texts, &edits).expect("it fits").remove("m.py").unwrap_or_default();
    let expected = "\
        self.latest = Step(self.latest)
        if self.latest.before is not None:
            self.latest.before.before = None
        return 1
";
    assert!(changed.contains(expected), "{changed}");
    assert!(cuts("inner").is_none());
}

#[test]
fn calls_that_keep_by_design_are_written_so_that_they_do_not() {
    let log = "for epoch in range(9):\n    log.debug('weights %s of %d', rows(epoch), epoch)\n";
    let all = edited(LeakClass::LogRecordsKept, log, 2, "<module>");
    with(&all, "    log.debug('weights %s of %d' % (rows(epoch), epoch))\n");
    let one = "for epoch in range(9):\n    log.debug('weights %s', rows(epoch))\n";
    with(
        &edited(LeakClass::LogRecordsKept, one, 2, "<module>"),
        "log.debug('weights %s' % (rows(epoch),))\n",
    );
    let pool = "for epoch in range(9):\n    pool.submit(upload, epoch)\n";
    with(
        &edited(LeakClass::UnboundedQueue, pool, 2, "<module>"),
        "    pool.submit(upload, epoch).result()\n",
    );
    let mock =
        "from unittest import mock\nboard = mock.Mock()\nfor epoch in range(9):\n    board.add(epoch)\n";
    with(
        &edited(LeakClass::CallsRecorded, mock, 4, "<module>"),
        "    board.add(epoch)\n    board.reset_mock()\n",
    );
    let loader = "loader = DataLoader(rows, persistent_workers=True)\n";
    with(
        &edited(LeakClass::LoaderPerEpoch, loader, 1, "<module>"),
        "DataLoader(rows, persistent_workers=False)",
    );
    let profiler = "\
from torch.profiler import profile

def main():
    profiler = profile(record_shapes=True)
    profiler.start()
    for epoch in range(9):
        train()
";
    let all = edited(LeakClass::ProfilerLeftOn, profiler, 4, "main");
    let once = with(
        &all,
        "profile(record_shapes=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1))",
    );
    assert!(
        once.contains("        train()\n        profiler.step()\n")
            && once.contains("import torch.profiler\n"),
        "{once}"
    );
}

#[test]
fn segments_are_unlinked_where_they_are_closed_last() {
    let alone = "\
def write(values):
    segment = SharedMemory(create=True, size=9)
    segment.close()
";
    with(
        &edited(LeakClass::SharedMemoryLeft, alone, 2, "write"),
        "    segment.close()\n    segment.unlink()\n",
    );
    let read =
        format!("{alone}\n\ndef read(name):\n    other = SharedMemory(name=name)\n    other.close()\n");
    let all = edited(LeakClass::SharedMemoryLeft, &read, 2, "write");
    with(&all, "    other.close()\n    other.unlink()\n");
    assert!(!all.iter().any(|text| text.contains("segment.unlink()")), "{all:#?}");
}

#[test]
fn the_collector_runs_once_in_each_turn_of_the_outermost_loop() {
    let text = "\
class Trial:
    def __init__(self):
        self.logger = Logger(self)

def main():
    for epoch in range(9):
        trial = Trial()
        trial.run()
";
    let all = edited(LeakClass::ReferenceCycle, text, 3, "Trial.__init__");
    let collected = with(&all, "        trial.run()\n        gc.collect()\n");
    assert!(collected.contains("import gc\n"), "{collected}");
}

#[test]
fn a_cache_keeps_its_newest_entries() {
    let text = "\
class Store:
    def load(self, path):
        if path not in self.maps:
            self.maps[path] = read(path)
        return self.maps[path]
";
    let all = edited(LeakClass::UnboundedCache, text, 4, "Store.load");
    let bounded =
        "            while len(self.maps) > 128:\n                self.maps.pop(next(iter(self.maps)))\n";
    assert!(all[0].contains(bounded), "{}", all[0]);
    assert!(!all.iter().any(|text| text.contains(".pop(path, None)")), "{all:#?}");
    let memo = "\
from functools import lru_cache

class Features:
    @lru_cache(maxsize=None)
    def of(self, number, speed):
        return compute(number, speed)
";
    let all = edited(LeakClass::CachedMethod, memo, 5, "Features.of");
    with(&all, "    @lru_cache(maxsize=128)\n    def of(");
}

#[test]
fn exceptions_are_kept_without_frames_in_whatever_file() {
    let text = "\
class Study:
    def run(self, objective):
        trial = Trial()
        self.trials.append(trial)
        try:
            trial.value = objective(trial)
        except ValueError as error:
            trial.outcome = error
            log.append(str(error))
";
    let all = edited(LeakClass::ExceptionKeepsFrames, text, 4, "Study.run");
    with(
        &all,
        "            trial.outcome = error.with_traceback(None)\n            log.append(str(error))\n",
    );
}

#[test]
fn what_is_joined_by_one_function_is_cut_together() {
    let text = "\
class Bank:
    def __init__(self, limit):
        self.limit = limit

    def push(self, vectors, ids):
        self.vectors = torch.cat([self.vectors, vectors])
        self.ids = torch.cat([self.ids, ids])


class Pruner:
    def __init__(self, keep):
        self.keep = keep
";
    let all = edited(LeakClass::UnboundedHistory, text, 6, "Bank.push");
    let both = "        self.vectors = torch.cat([self.vectors, vectors])[-self.limit:]\n        \
                self.ids = torch.cat([self.ids, ids])[-self.limit:]\n";
    with(&all, both);
    assert!(
        !all.iter().any(|text| text.contains("self.keep:") || text.contains("vectors.clear()")),
        "{all:#?}"
    );
}

#[test]
fn a_hook_that_an_object_keeps_is_removed_where_the_object_was_used() {
    let text = "\
class Rank:
    def __init__(self, layer):
        self.handle = layer.register_forward_hook(self.collect)


def evaluate(model, batches):
    rank = Rank(model.embed)
    for x in batches:
        model(x)
    return rank.result()
";
    let all = edited(LeakClass::HookNeverRemoved, text, 3, "Rank.__init__");
    with(&all, "        model(x)\n    rank.handle.remove()\n    return rank.result()\n");
}

/// One file with each alternative for a cycle that `Study.__init__` makes at a line of another.
fn edited_elsewhere(files: &[(&str, &str)], study: &str, line: u32, file: &str) -> Vec<String> {
    edited_elsewhere_for(LeakClass::ReferenceCycle, files, study, line, file)
}

fn edited_elsewhere_for(
    class: LeakClass,
    files: &[(&str, &str)],
    study: &str,
    line: u32,
    file: &str,
) -> Vec<String> {
    let texts: Texts = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
    let site = Site {
        role: SiteRole::Grows,
        file: study.into(),
        line,
        end_line: line,
        column: 1,
        function: "Study.__init__".into(),
        text: String::new(),
        cell: None,
    };
    let finding = Finding::new(Settled { sites: vec![site], ..Settled::of(class) });
    let changed = |fix: &Fix| {
        let edits: Vec<_> = fix.edits.iter().collect();
        caulk_check::edited(&texts, &edits).and_then(|mut changed| changed.remove(file))
    };
    alternatives(&finding, &texts).iter().filter_map(changed).collect()
}

#[test]
fn the_collector_is_left_on_in_another_file() {
    let study = "class Study:\n    def __init__(self):\n        self.series = Series(self)\n";
    let main = "import gc\n\ngc.disable()\nfor number in range(9):\n    train(Study())\n";
    let all = edited_elsewhere(&[("study.py", study), ("main.py", main)], "study.py", 3, "main.py");
    with(&all, "import gc\n\nfor number in range(9):\n    train(Study())\n");
    with(&all, "    train(Study())\n    gc.collect()\n");
}

#[test]
fn calls_are_followed_from_file_to_file_to_the_loop() {
    let files = [
        ("a.py", "import gc\n\nif fast:\n    gc.disable()\nfor number in range(9):\n    train(number)\n"),
        ("b.py", "def train(number):\n    return Study(number)\n"),
        ("c.py", "class Study:\n    def __init__(self, number):\n        self.series = Series(self)\n"),
    ];
    let all = edited_elsewhere(&files, "c.py", 3, "a.py");
    with(&all, "if fast:\n    pass\n");
    with(&all, "    train(number)\n    gc.collect()\n");
}

#[test]
fn a_handle_is_kept_with_those_that_are_removed() {
    let text = "\
class Tap:
    def install(self, module):
        module.register_forward_hook(self.hook)

    def close(self):
        for handle in self.handles:
            handle.remove()
";
    let all = edited(LeakClass::HookNeverRemoved, text, 3, "Tap.install");
    with(&all, "        self.handles.append(module.register_forward_hook(self.hook))\n");
    let popped = text
        .replace("for handle in self.handles:", "while self.handles:")
        .replace("handle.remove()", "self.handles.pop().remove()");
    let all = edited(LeakClass::HookNeverRemoved, &popped, 3, "Tap.install");
    with(&all, "        self.handles.append(module.register_forward_hook(self.hook))\n");
}

#[test]
fn what_runs_at_the_end_takes_itself_off() {
    let text = "\
import atexit


class Recorder:
    def __init__(self):
        atexit.register(self.close)

    def close(self):
        \"\"\"Writes the summary.\"\"\"
        if self.closed:
            return
";
    let all = edited(LeakClass::HookNeverRemoved, text, 6, "Recorder.__init__");
    with(
        &all,
        "        \"\"\"Writes the summary.\"\"\"\n        atexit.unregister(self.close)\n        if self.closed:\n",
    );
}

#[test]
fn a_length_of_the_settings_is_a_length() {
    let text = "\
class Points:
    def refine(self, found):
        self.tried = torch.cat([self.tried, found])

    def spread(self):
        return self.tried[-self.settings.candidates:].mean()
";
    let all = edited(LeakClass::UnboundedHistory, text, 3, "Points.refine");
    with(&all, "torch.cat([self.tried, found])[-self.settings.candidates:]\n");
}

#[test]
fn a_method_that_uses_or_empties_others_empties_this_one_too() {
    let text = "\
class Scores:
    def __init__(self):
        self.rows, self.seen = [], set()

    def reset(self):
        self.seen.clear()

    def update(self, name, row):
        self.seen.add(name)
        self.rows.append(row)

    def summary(self):
        total = 0
        for row in self.rows[-len(self.seen):]:
            total += row.mean()
        return total / len(self.seen)
";
    let all = edited(LeakClass::UnboundedHistory, text, 10, "Scores.update");
    with(&all, "        self.seen.clear()\n        self.rows.clear()\n");
    with(&all, "        self.rows.clear()\n        return total / len(self.seen)\n");
    let given = text.replace("return total / len(self.seen)", "return self.rows");
    let all = edited(LeakClass::UnboundedHistory, &given, 10, "Scores.update");
    assert!(!all.iter().any(|text| text.contains("clear()\n        return self.rows")), "{all:#?}");
}

#[test]
fn a_figure_is_closed_where_another_file_saves_it() {
    let board =
        "import matplotlib.pyplot as plt\n\ndef draw(rows):\n    fig = plt.figure()\n    return fig\n";
    let study = "\
class Board:
    def add(self, name, fig):
        fig.savefig(name)
        self.count += 1
";
    let all = edited_elsewhere_for(
        LeakClass::FigureNotClosed,
        &[("board.py", board), ("study.py", study)],
        "board.py",
        4,
        "study.py",
    );
    with(&all, "        fig.savefig(name)\n        plt.close(fig)\n        self.count += 1\n");
    with(&all, "import matplotlib.pyplot as plt\n");
}

#[test]
fn groups_that_were_added_before_are_dropped_with_their_state() {
    let text = "\
class Study:
    def restart(self, head):
        self.optimizer.add_param_group({\"params\": head.parameters()})
";
    let all = edited(LeakClass::OptimizerRecreated, text, 3, "Study.restart");
    with(
        &all,
        "                self.optimizer.state.pop(parameter, None)\n        del self.optimizer.param_groups[1:]\n        self.optimizer.add",
    );
}
