//! What a file says about a container besides where it grows.

mod file;

use caulk_python::{BoundKind, Facts, Owner};
use file::File;

fn facts(name: &str, function: &str, source: &str) -> Facts {
    let file = File::parse("train.py", source);
    assert_eq!(file.problems(), &[], "{source}");
    file.lines().facts(name, function)
}

/// `line kind called` of every bound.
fn check_bounds(name: &str, function: &str, source: &str, expected: &[&str], bounded: bool) {
    let facts = facts(name, function, source);
    let found: Vec<String> = facts
        .bounds
        .iter()
        .map(|bound| {
            format!("{} {:?} {}", bound.spot.line, bound.kind, if bound.called { "called" } else { "idle" })
        })
        .collect();
    assert_eq!(
        (found, facts.bounded()),
        (expected.iter().map(ToString::to_string).collect(), bounded),
        "{source}"
    );
}

#[test]
fn bounds_are_found_with_who_calls_them() {
    let class = |body: &str| {
        format!(
            "class A:\n def __init__(self, n):\n  self.xs = []\n  self.n = n\n def step(self, v):\n  self.xs.append(v)\n{body}"
        )
    };
    check_bounds("xs", "A.step", &class(""), &[], false);
    check_bounds(
        "xs",
        "A.step",
        &class("  if len(self.xs) > self.n: self.xs.pop(0)\n"),
        &["7 LengthTest called", "7 Removed called"],
        true,
    );
    check_bounds("xs", "A.step", &class("  del self.xs[:-self.n]\n"), &["7 Trimmed called"], true);
    check_bounds("xs", "A.step", &class("  self.xs = self.xs[-self.n:]\n"), &["7 Trimmed called"], true);
    check_bounds("xs", "A.step", &class("  self.xs[:] = self.xs[-3:]\n"), &["7 Trimmed called"], true);
    check_bounds(
        "xs",
        "A.step",
        &class(" def close(self):\n  self.xs.clear()\n"),
        &["8 Cleared idle"],
        false,
    );
    check_bounds(
        "xs",
        "A.step",
        &class(" def flush(self):\n  self.xs.clear()\na = A(1)\na.flush()\n"),
        &["8 Cleared called"],
        true,
    );
    check_bounds(
        "xs",
        "A.step",
        &class(" def reset(self):\n  self.xs = []\nA(1).reset()\n"),
        &["8 Rebound called"],
        true,
    );
    check_bounds(
        "xs",
        "A.step",
        &class(" def on_train_epoch_end(self):\n  self.xs.clear()\n"),
        &["8 Cleared called"],
        true,
    );
    check_bounds(
        "xs",
        "A.step",
        &class(" def on_sanity_check_end(self):\n  self.xs.clear()\n"),
        &["8 Cleared idle"],
        false,
    );
    check_bounds(
        "xs",
        "A.step",
        &class(" def on_validation_epoch_end(self):\n  if self.trainer.sanity_checking: self.xs.clear()\n"),
        &["8 Cleared idle"],
        false,
    );
    check_bounds(
        "xs",
        "A.step",
        &class("  if len(self.xs) % 10 == 0: print(1)\n"),
        &["7 LengthTest called"],
        false,
    );
    check_bounds(
        "xs",
        "A.step",
        &class(" def other(self, xs):\n  xs.clear()\n  self.ys.clear()\n"),
        &[],
        false,
    );
    check_bounds("xs", "A.step", &class("class B:\n def step(self):\n  self.xs.clear()\n"), &[], false);
    check_bounds("d", "f", "d = deque(maxlen=3)\ndef f(v):\n d.append(v)\n", &["1 Capacity called"], true);
    check_bounds("d", "f", "d = deque(maxlen=None)\ndef f(v):\n d.append(v)\n", &[], false);
    check_bounds("q", "f", "q = Queue(-1)\ndef f(v):\n q.put(v)\n", &[], false);
}

#[test]
fn a_local_is_bounded_by_a_new_one_per_round() {
    let per_epoch = "def f():\n for e in range(3):\n  xs = []\n  for v in e: xs.append(v)\n";
    check_bounds("xs", "f", per_epoch, &["3 Rebound called"], true);
    check_bounds("xs", "f", "def f():\n xs = []\n for v in e: xs.append(v)\n", &[], false);
    let total =
        "TOTAL = 0\ndef f(v):\n global TOTAL\n TOTAL += v\ndef g():\n global TOTAL\n TOTAL = 0\ng()\n";
    check_bounds("TOTAL", "f", total, &["7 Rebound called"], true);
}

#[test]
fn caches_are_told_by_their_lookups_and_keys() {
    let source = "\
CACHE = {}
def get(path, fold, side):
    key = (path, round(side, 3), fold)
    found = CACHE.get(key)
    if found is None:
        found = CACHE[key] = load(path)
    return found
class Log:
    def add(self, v):
        self.rows['all'] = v
        return self.rows['all'], self.list[0]
";
    let cache = facts("CACHE", "get", source);
    assert!(cache.cache_like());
    assert_eq!(cache.keys[0].names, ["key", "path", "side", "fold"]);
    assert_eq!(cache.lookups[0].line, 4);
    assert!(!facts("rows", "Log.add", source).cache_like());
}

#[test]
fn windows_that_nobody_reads_are_found() {
    let source = "\
MAX_ROWS = 5
class A:
    def __init__(self, window, grad_window):
        self.max_epochs = 10
        self.grad_window = grad_window
        self.loss_window = window
        self.grad_history, self.loss_history = [], []
        self.max_len = 3
    def step(self, v):
        self.grad_history.append(v)
        self.loss_history.append(v[-self.loss_window:])
class B:
    def __init__(self):
        self.grad_limit = 4
";
    let found = |name: &str| -> Vec<String> {
        facts(name, "A.step", source).windows.iter().map(|window| window.expression.clone()).collect()
    };
    assert_eq!(found("grad_history"), ["self.grad_window", "self.max_len"]);
    assert_eq!(found("loss_history"), ["self.max_len"]);
}

#[test]
fn state_that_is_fed_back_is_seen() {
    let source = "\
class Agent:
    def __init__(self, policy):
        self.policy = policy
        self.hidden = None
    def act(self, obs):
        out, hidden = self.policy(obs, self.hidden)
        self.hidden = hidden
        return out
    def watch(self, obs):
        out, last = self.policy(obs, None)
        self.last = last
        helper(self.last)
        self.free = self.policy(obs, self.free.detach())
def helper(x): return x
def solve(q0, arm, steps):
    q = q0
    kept = []
    for _ in range(steps):
        err = arm.tip(q)
        q = q - 0.1 * err
        kept.append((q, err))
    return kept
";
    let hidden = facts("self.hidden", "Agent.act", source);
    assert!(hidden.fed_to_module());
    assert_eq!(hidden.loop_carried.map(|spot| spot.line), Some(7));
    let last = facts("self.last", "Agent.watch", source);
    assert!(!last.fed_to_module() && last.fed.is_empty());
    assert_eq!(last.loop_carried, None);
    let free = facts("self.free", "Agent.watch", source);
    assert_eq!((free.loop_carried, free.fed), (None, Vec::new()));
    let q = facts("q", "solve", source);
    assert_eq!((q.loop_carried.map(|spot| spot.line), q.summed), (Some(20), true));
    assert_eq!(
        q.fed.iter().map(|fed| (fed.callee.as_str(), fed.direct)).collect::<Vec<_>>(),
        [("arm.tip", false)]
    );
    let kept = facts("kept", "solve", source);
    assert_eq!((kept.loop_carried.map(|spot| spot.line), kept.summed), (Some(20), false));
    assert_eq!(kept.stored, ["q", "err"]);
}

#[test]
fn grad_mode_sums_and_hooks_are_seen() {
    let source = "\
class Net(LightningModule):
    def validation_step(self, batch):
        self.outputs.append(batch)
    def training_step(self, batch):
        self.total += batch
        with torch.no_grad():
            self.norms.append(batch)
        with torch.enable_grad():
            self.mixed.append(batch)
    @torch.inference_mode()
    def score(self, batch):
        self.scores.append(batch)
        self.mixed.append(batch)
class Plain:
    def train_step(self, batch):
        self.outputs.append(batch)
";
    assert_eq!(facts("outputs", "Net.validation_step", source).step_hook.as_deref(), Some("validation_step"));
    assert_eq!(facts("outputs", "Plain.train_step", source).step_hook, None);
    assert!(facts("total", "Net.training_step", source).summed);
    assert!(facts("norms", "Net.training_step", source).under_no_grad);
    assert!(facts("scores", "Net.score", source).under_no_grad);
    assert!(!facts("mixed", "Net.score", source).under_no_grad);
}

#[test]
fn the_same_name_in_another_function_is_another_container() {
    let source = "def a(v):\n xs.append(v)\ndef b(v):\n xs = []\n xs.append(v)\n xs.clear()\nxs = []\n";
    let of = |function: &str| {
        facts("xs", function, source).bounds.iter().map(|bound| bound.kind).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), []);
    assert_eq!(of("b"), [BoundKind::Cleared]);
    let file = File::parse("x.py", source);
    assert_eq!(file.lines().facts_of("xs", &Owner::Module).bounds, []);
}

#[test]
fn what_a_trim_leaves_is_the_most_there_is() {
    let most = |trim: &str| {
        let source = format!(
            "class A:\n def __init__(self, n=40):\n  self.xs = []\n  self.n = n\n def step(self, v):\n  self.xs.append(v)\n  {trim}\n"
        );
        facts("xs", "A.step", &source).bounds.iter().filter_map(|bound| bound.most).max()
    };
    assert_eq!(most("del self.xs[:-self.n]"), Some(40));
    assert_eq!(most("self.xs = self.xs[-self.n:]"), Some(40));
    assert_eq!(most("self.xs[:] = self.xs[-3:]"), Some(3));
    // How many these leave is not known.
    assert_eq!(most("del self.xs[:1]"), None);
    assert_eq!(most("if v: del self.xs[:-self.n]"), None);
}

#[test]
fn elements_that_are_cut_where_they_grow_are_bounded() {
    let most = |trim: &str| {
        let source = format!(
            "class A:\n def __init__(self):\n  self.by = {{}}\n def step(self, k, v):\n  xs = self.by.setdefault(k, [])\n  xs.append(v)\n  {trim}\n"
        );
        facts("by", "A.step", &source).most_inside
    };
    assert_eq!(most("del xs[:-40]"), Some(40));
    assert_eq!(most("if v: del xs[:-40]"), None);
    assert_eq!(most("pass"), None);
}
