//! Edits: what they write, that they parse, and that a second round finds nothing more to edit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Lines` is of one lifetime, a closure of any"
)]

mod file;

use caulk_core::{Applicability, Fix};
use caulk_python::{GrowSite, Lines, apply};
use file::File;

/// Applies what `fix` proposes; `expected` is the changed text, or the advice where there are no edits.
fn check(source: &str, fix: impl Fn(&Lines<'_>) -> Option<Fix>, expected: &str) {
    let file = File::parse("train.py", source);
    assert_eq!(file.problems(), &[], "{source}");
    let Some(found) = fix(&file.lines()) else {
        assert_eq!("", expected, "no fix for\n{source}");
        return;
    };
    if found.edits.is_empty() {
        assert_eq!(found.applicability, Applicability::DisplayOnly);
        assert_eq!(found.description, expected, "{source}");
        return;
    }
    assert_eq!(found.applicability, Applicability::Unsafe);
    assert!(found.edits.iter().all(|edit| edit.file == "train.py"));
    let changed = apply(source, &found.edits).unwrap();
    assert_eq!(changed, expected);
    let again = File::parse("train.py", &changed);
    assert_eq!(again.problems(), &[], "{changed}");
    if let Some(second) = fix(&again.lines()) {
        assert_eq!(second.edits, [], "not idempotent: {second:?}\n{changed}");
    }
}

/// The fix at the first growth of `xs` (else its first binding).
fn at<'f>(
    fix: impl Fn(&Lines<'_>, &GrowSite) -> Option<Fix> + 'f,
) -> impl Fn(&Lines<'_>) -> Option<Fix> + 'f {
    move |lines| {
        let sites = lines.grow_sites("xs");
        let site = sites.iter().find(|site| site.kind.grows()).or(sites.last())?;
        fix(lines, site)
    }
}

fn check_line(line: &str, expected: &str) {
    check(
        &format!("{line}\n"),
        at(|lines, site| lines.detach_fix(site)),
        &if expected.is_empty() { String::new() } else { format!("{expected}\n") },
    );
}

#[test]
fn values_are_detached_with_parentheses_where_precedence_asks() {
    check_line("xs.append(loss)", "xs.append(loss.detach())");
    check_line("xs.append(a.b[0].c(d))", "xs.append(a.b[0].c(d).detach())");
    check_line("xs.append(a + b)", "xs.append((a + b).detach())");
    check_line("xs.append((a + b))", "xs.append(((a + b).detach()))");
    check_line("xs.append(-loss)", "xs.append((-loss).detach())");
    check_line("xs.append(a if b else c)", "xs.append((a if b else c).detach())");
    check_line("xs.append(await f())", "xs.append((await f()).detach())");
    check_line("xs[k] = a @ b", "xs[k] = (a @ b).detach()");
    check_line("xs += loss", "xs += loss.detach()");
    check_line("xs = xs + loss * 2", "xs = (xs + loss * 2).detach()");
    check_line("xs = torch.cat([xs, y])", "xs = torch.cat([xs, y]).detach()");
    check_line("self.xs = hidden", "self.xs = hidden.detach()");
    check_line("xs.insert(0, größe)", "xs.insert(0, größe.detach())");
    check_line("xs.setdefault(k, loss)", "xs.setdefault(k, loss.detach())");
    check_line("xs.extend(f(b) for b in c)", "xs.extend(f(b).detach() for b in c)");
    check_line("xs += [model(b) for b in c]", "xs += [model(b).detach() for b in c]");
}

#[test]
fn what_has_no_graph_is_left_alone() {
    for value in [
        "loss.detach()",
        "loss.item()",
        "float(loss)",
        "1",
        "'text'",
        "loss.detach().cpu()",
        "x.data",
        "len(y)",
        "y.tolist()",
        "lambda: loss",
        "f'{loss}'",
        "None",
        "a == b",
        "np.mean(y)",
        "torch.optim.Adam(p)",
    ] {
        check_line(&format!("xs.append({value})"), "");
    }
    check_line("for i in range(3): xs.append(i)", "");
    check_line("for i, b in enumerate(loader): xs.append(i)", "");
    check_line("value = loss.item(); xs.append(value * 2)", "");
    check_line("xs.append(loss.mean().detach() + other.detach())", "");
}

#[test]
fn members_are_detached_where_they_hold_tensors() {
    check_line(
        "for epoch in range(9): xs.append({'epoch': epoch, 'loss': vloss, 'name': f'e{epoch}'})",
        "for epoch in range(9): xs.append({'epoch': epoch, 'loss': vloss.detach(), 'name': f'e{epoch}'})",
    );
    check_line("xs.append((1, (logits, [loss])))", "xs.append((1, (logits.detach(), [loss.detach()])))");
    check_line("xs.append(Result(q=loss, n=len(y)))", "xs.append(Result(q=loss.detach(), n=len(y)))");
    check_line("y.backward(); xs.append((y, name))", "y.backward(); xs.append((y.detach(), name))");
    check_line("xs += [(n, loss) for n in names]", "xs += [(n, loss.detach()) for n in names]");
    check_line("xs.append((1, 'a'))", "");
    check(
        "xs.append((a, b))\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach what is a tensor among `a`, `b` before it is stored.",
    );
    check(
        "row = {'loss': loss}\nxs.append(row)\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `row` before it is stored.",
    );
    check(
        "xs.extend(losses)\n",
        at(|lines, site| lines.detach_fix(site)),
        "Store the elements of `losses` detached: `x.detach() for x in losses`.",
    );
    check(
        "xs = []\nxs += losses\n",
        at(|lines, site| lines.detach_fix(site)),
        "Store the elements of `losses` detached: `x.detach() for x in losses`.",
    );
}

#[test]
fn an_iterate_that_is_differentiated_stays_differentiable() {
    check(
        "def solve(xs):\n    for _ in y:\n        (g,) = torch.autograd.grad(f(xs), xs, create_graph=True)\n        xs = xs - 0.1 * g\n",
        at(|lines, site| lines.detach_fix(site)),
        "def solve(xs):\n    for _ in y:\n        (g,) = torch.autograd.grad(f(xs), xs, create_graph=True)\n        xs = (xs - 0.1 * g).detach().requires_grad_()\n",
    );
}

#[test]
fn mixed_types_get_the_guarded_form() {
    check(
        "\"\"\"Doc.\"\"\"\nclass M:\n    def update(self, value):\n        self.xs.append(value)\nm = M()\nm.update(loss)\nm.update(loss.item())\n",
        at(|lines, site| lines.detach_fix(site)),
        "\"\"\"Doc.\"\"\"\nimport torch\nclass M:\n    def update(self, value):\n        self.xs.append(float(value) if isinstance(value, torch.Tensor) else value)\nm = M()\nm.update(loss)\nm.update(loss.item())\n",
    );
    check(
        "import torch as th\nxs.append(loss)\n",
        at(|lines, site| lines.float_fix(site)),
        "import torch as th\nxs.append(float(loss) if isinstance(loss, th.Tensor) else loss)\n",
    );
    check(
        "#!/bin/python\n# note\nxs.append(loss)\n",
        at(|lines, site| lines.float_fix(site)),
        "#!/bin/python\n# note\nimport torch\nxs.append(float(loss) if isinstance(loss, torch.Tensor) else loss)\n",
    );
    check(
        "xs.append(loss * n)\n",
        at(|lines, site| lines.float_fix(site)),
        "Store numbers: `float(x) if isinstance(x, torch.Tensor) else x` with x = `loss * n`.",
    );
    check("xs = hidden\n", at(|lines, site| lines.float_fix(site)), "");
}

#[test]
fn an_unread_window_becomes_a_bound() {
    let class = |made: &str, step: &str| {
        format!(
            "import torch\n\nclass A:\n    def __init__(self, window):\n        self.window = window\n        self.xs = {made}\n\n    def step(self, v):\n        self.xs.append(v)\n{step}"
        )
    };
    let ring = class("deque(maxlen=self.window)", "")
        .replace("import torch\n", "import torch\nfrom collections import deque\n");
    check(&class("[]", ""), at(|lines, site| lines.bound_fix(site)), &ring);
    check(
        &class("[]", "").replace('\n', "\r\n"),
        at(|lines, site| lines.bound_fix(site)),
        &ring.replace('\n', "\r\n"),
    );
    // A deque cannot be stacked or sliced: the list is cut instead.
    let stacked = "    def mean(self):\n        return torch.stack(self.xs).mean()\n";
    check(
        &class("[]", stacked),
        at(|lines, site| lines.bound_fix(site)),
        &class("[]", &format!("        del self.xs[:-self.window]\n{stacked}")),
    );
    let sliced = "    def last(self):\n        return self.xs[-3:]\n";
    check(
        &class("[]", sliced),
        at(|lines, site| lines.bound_fix(site)),
        &class("[]", &format!("        del self.xs[:-self.window]\n{sliced}")),
    );
    // The limit is not there yet when the list is made.
    let late = "class A:\n    def __init__(self, window):\n        self.xs = []\n        self.window = window\n    def step(self, v):\n        self.xs.append(v)  # grows\n";
    check(
        late,
        at(|lines, site| lines.bound_fix(site)),
        &late.replace("# grows\n", "# grows\n        del self.xs[:-self.window]\n"),
    );
    // Bounded already, or by nothing that the code names.
    check(
        &class("[]", "        self.xs = self.xs[-self.window:]\n"),
        at(|lines, site| lines.bound_fix(site)),
        "",
    );
    check(
        "xs = []\ndef f(v): xs.append(v)\n",
        at(|lines, site| lines.bound_fix(site)),
        "Bound `xs`: `collections.deque(maxlen=...)`, or drop old entries.",
    );
    // A dict drops its oldest entries.
    let cache =
        "MAX_XS = 9\nxs = {}\ndef f(k):\n    if k not in xs:\n        xs[k] = load(k)\n    return xs[k]\n";
    check(
        cache,
        at(|lines, site| lines.bound_fix(site)),
        "MAX_XS = 9\nxs = {}\ndef f(k):\n    if k not in xs:\n        xs[k] = load(k)\n        while len(xs) > MAX_XS:\n            xs.pop(next(iter(xs)))\n    return xs[k]\n",
    );
    // No line of its own: words.
    check(
        "class A:\n    def __init__(self, w):\n        self.xs = list(w)\n        self.window = w\n    def step(self, v): self.xs.append(v)\n",
        at(|lines, site| lines.bound_fix(site)),
        "Keep at most `self.window` entries in `self.xs`; nothing reads that limit.",
    );
}

#[test]
fn step_outputs_are_cleared_at_the_end_of_their_hook() {
    let class = |end: &str| {
        format!(
            "class Net(LightningModule):\n    def validation_step(self, batch):\n        self.xs.append(batch)\n\n    def on_validation_epoch_end(self):\n        if self.trainer.sanity_checking:\n            self.xs.clear()\n            return\n        print(len(self.xs)){end}\n\n    def other(self):\n        pass\n"
        )
    };
    check(&class(""), at(|lines, site| lines.clear_fix(site)), &class("\n        self.xs.clear()"));
    check(
        &class("\n        return 1"),
        at(|lines, site| lines.clear_fix(site)),
        &class("\n        self.xs.clear()\n        return 1"),
    );
    check(
        &class("\n        return sum(self.xs)"),
        at(|lines, site| lines.clear_fix(site)),
        "Empty it at the end of `Net.on_validation_epoch_end`: `self.xs.clear()`.",
    );
    check(
        "class Net(LightningModule):\n    def test_step(self, b):\n        self.xs.append(b)\n",
        at(|lines, site| lines.clear_fix(site)),
        "Empty it at the end of `on_test_epoch_end`: `self.xs.clear()`.",
    );
}

#[test]
fn what_one_function_gathers_another_empties() {
    let source = |flush: &str, call: &str| {
        format!(
            "class T:\n    def defer(self, fn):\n        self.xs.append(fn)\n    def flush(self):\n        for fn in self.xs:\n            fn()\n{flush}t = T()\n{call}"
        )
    };
    let in_loop = "for e in range(3):\n    t.flush()\n";
    check(
        &source("", in_loop),
        at(|lines, site| lines.clear_fix(site)),
        &source("        self.xs.clear()\n", in_loop),
    );
    check(
        &source("", "t.flush()\n"),
        at(|lines, site| lines.clear_fix(site)),
        "Empty it once its contents have been used: `self.xs.clear()`.",
    );
}

#[test]
fn views_are_copied_and_tracebacks_dropped() {
    check(
        "xs.append(images[0].detach().cpu())\n",
        at(|lines, site| lines.clone_fix(site)),
        "xs.append(images[0].detach().cpu().clone())\n",
    );
    check(
        "xs.append(np.asarray(f)[1:])\n",
        at(|lines, site| lines.clone_fix(site)),
        "xs.append(np.asarray(f)[1:].copy())\n",
    );
    check("xs.append(1)\n", at(|lines, site| lines.clone_fix(site)), "");
    check(
        "try: f()\nexcept E as exc:\n    xs.append((i, exc))\n",
        at(|lines, site| lines.traceback_fix(site)),
        "try: f()\nexcept E as exc:\n    xs.append((i, exc.with_traceback(None)))\n",
    );
    check(
        "try: f()\nexcept E as exc:\n    xs.append(wrap(exc))\n",
        at(|lines, site| lines.traceback_fix(site)),
        "Store the exception's type and text: its traceback keeps the variables of every frame.",
    );
    check("xs.append(exc)\n", at(|lines, site| lines.traceback_fix(site)), "");
}

#[test]
fn figures_are_closed_behind_their_last_use() {
    let close = |line: u32| move |lines: &Lines<'_>| lines.close_figure_fix(line);
    check(
        "def plot():\n    plt.figure()\n    plt.plot(x)\n    plt.savefig(p)\n",
        close(2),
        "def plot():\n    plt.figure()\n    plt.plot(x)\n    plt.savefig(p)\n    plt.close()\n",
    );
    check(
        "for e in r:\n\tfig, ax = pp.subplots(2)\n\tax.plot(x)\n\tfig.savefig(p)  # saved\n\tlog(e)\n",
        close(2),
        "for e in r:\n\tfig, ax = pp.subplots(2)\n\tax.plot(x)\n\tfig.savefig(p)  # saved\n\tpp.close(fig)\n\tlog(e)\n",
    );
    check(
        "def plot():\n    fig = plt.figure()\n    return fig\n",
        close(2),
        "Close the figure where it is used last: `plt.close(fig)`.",
    );
    check(
        "def plot(self):\n    self.fig = plt.figure()\n    self.fig.savefig(p)\n",
        close(2),
        "Close the figure where it is used last: `plt.close(fig)`.",
    );
    check(
        "def plot():\n    fig = plt.figure()\n    draw(fig)\n",
        close(2),
        "Close the figure when it is saved: `plt.close(fig)`.",
    );
    check("plt.figure(); plt.savefig(p); plt.close()\n", close(1), "");
    check("x = 1\n", close(1), "");
}

#[test]
fn gradients_queues_hooks_and_caches() {
    check(
        "def step(loss):\n    loss.backward(create_graph=True)\n    for p in ps:\n        p.data.add_(p.grad)\n        p.grad.zero_()\n",
        |lines| lines.grad_none_fix(2),
        "def step(loss):\n    loss.backward(create_graph=True)\n    for p in ps:\n        p.data.add_(p.grad)\n        p.grad = None\n",
    );
    check(
        "loss.backward(create_graph=True)\nopt.zero_grad(set_to_none=False)\n",
        |lines| lines.grad_none_fix(1),
        "loss.backward(create_graph=True)\nopt.zero_grad(set_to_none=True)\n",
    );
    check("loss.backward()\np.grad.zero_()\n", |lines| lines.grad_none_fix(1), "");
    check(
        "for x in y:\n    loss.backward()\n    opt.step()\n",
        |lines| lines.zero_grad_fix(2),
        "for x in y:\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
    );
    // Accumulation on purpose, another optimizer, a model that clears.
    check(
        "for x in y:\n    loss.backward()\n    if x % 2: opt.step()\n",
        |lines| lines.zero_grad_fix(2),
        "Clear the gradients before each backward pass: `opt.zero_grad()`.",
    );
    check(
        "a.backward()\na_opt.step()\na_opt.zero_grad()\nb.backward()\nb_opt.step()\n",
        |lines| lines.zero_grad_fix(4),
        "a.backward()\na_opt.step()\na_opt.zero_grad()\nb_opt.zero_grad()\nb.backward()\nb_opt.step()\n",
    );
    check("model.zero_grad()\nloss.backward()\nopt.step()\n", |lines| lines.zero_grad_fix(2), "");
    check(
        "q = queue.Queue()\n",
        |lines| lines.queue_fix(1),
        "Give the queue a limit, `queue.Queue(maxsize=...)`: `put` then waits for the reader, `put_nowait` raises `queue.Full`.",
    );
    check(
        "from asyncio import Queue\nq = Queue()\n",
        |lines| lines.queue_fix(2),
        "Give the queue a limit, `Queue(maxsize=...)`: `put` then waits for the reader, `put_nowait` raises `asyncio.QueueFull`.",
    );
    check("q = queue.Queue(5)\n", |lines| lines.queue_fix(1), "");
    check(
        "hs.append(layer.register_forward_hook(f))\n",
        |lines| lines.remove_handle_fix(1),
        "Remove the hooks when they are no longer needed: `for handle in hs: handle.remove()`.",
    );
    check(
        "h = layer.register_forward_hook(f)\n",
        |lines| lines.remove_handle_fix(1),
        "Remove the hook when it is no longer needed: `h.remove()`.",
    );
    check(
        "import functools\nclass A:\n    @functools.lru_cache(\n        maxsize=None)\n    def f(self, x): return x\n",
        |lines| lines.uncache_fix("A.f"),
        "import functools\nclass A:\n    def f(self, x): return x\n",
    );
}

#[test]
fn edits_that_overlap_or_lie_outside_are_refused() {
    let file = File::parse("a.py", "xs.append(loss)\n");
    let fix = file.lines().detach_fix(&file.lines().grow_sites("xs")[0]).unwrap();
    assert_eq!(apply("", &fix.edits).as_deref(), None);
    let twice = [fix.edits[0].clone(), fix.edits[0].clone()];
    assert_eq!(apply("xs.append(loss)\n", &twice), None);
}

#[test]
fn what_is_added_to_a_container_is_detached_and_not_the_container() {
    check_line("xs = xs + (v.mean(),)", "xs = xs + (v.mean().detach(),)");
    check_line("xs = xs + [v.mean()]", "xs = xs + [v.mean().detach()]");
    check_line("xs = [v.mean()] + xs", "xs = [v.mean().detach()] + xs");
    check_line("xs = xs + [loss] * 2 + [logits]", "xs = xs + [loss.detach()] * 2 + [logits.detach()]");
    check_line("xs = [*xs, loss]", "xs = [*xs, loss.detach()]");
    check_line("xs = (*xs, loss)", "xs = (*xs, loss.detach())");
    check_line("xs = tuple(list(xs) + [loss])", "xs = tuple(list(xs) + [loss.detach()])");
    check_line("xs = xs | {epoch: loss}", "xs = xs | {epoch: loss.detach()}");
    check_line("xs = {**xs, epoch: loss}", "xs = {**xs, epoch: loss.detach()}");
    check_line("xs = dict(xs, last=loss)", "xs = dict(xs, last=loss.detach())");
    check_line("xs = xs | {loss}", "xs = xs | {loss.detach()}");
    check_line("xs |= {epoch: loss}", "xs |= {epoch: loss.detach()}");
    check_line("xs += [loss]", "xs += [loss.detach()]");
    check_line("xs += (net(x),)", "xs += (net(x).detach(),)");
    check_line("xs = xs + [model(b) for b in c]", "xs = xs + [model(b).detach() for b in c]");
    check_line("self.xs = self.xs + ((1, loss),)", "self.xs = self.xs + ((1, loss.detach()),)");
    check_line("xs = xs + [loss.item()]", "");
}

#[test]
fn nothing_is_called_on_what_may_be_a_container() {
    let added = "Detach the tensors that are added to `xs`: it is a container, and has no `.detach()`.";
    check("xs = ()\nxs = xs + losses\n", at(|lines, site| lines.detach_fix(site)), added);
    check("xs = []\nfor b in c: xs = xs + run(b)\n", at(|lines, site| lines.detach_fix(site)), added);
    check("xs = None\nxs = tuple()\nxs = xs + outputs\n", at(|lines, site| lines.detach_fix(site)), added);
    check(
        "class A:\n    def __init__(self): self.xs = []\n    def step(self, more):\n        self.xs = self.xs + more\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors that are added to `self.xs`: it is a container, and has no `.detach()`.",
    );
    check(
        "xs = ()\nxs += outputs\n",
        at(|lines, site| lines.detach_fix(site)),
        "Store the elements of `outputs` detached: `x.detach() for x in outputs`.",
    );
    check(
        "xs = xs + list(outputs)\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach what is a tensor among the elements of `outputs` before it is stored.",
    );
    check(
        "xs.append(list(outputs))\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach what is a tensor among the elements of `outputs` before it is stored.",
    );
    check(
        "xs = {**xs, **outputs, 'loss': loss}\n",
        at(|lines, site| lines.detach_fix(site)),
        "xs = {**xs, **outputs, 'loss': loss.detach()}\n",
    );
    check(
        "row = dict(loss=loss)\nxs.append(row)\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `row` before it is stored.",
    );
    check(
        "xs.append(row.copy())\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `row.copy()` before it is stored.",
    );
    check(
        "xs = (h, c)\nfor x in y: xs = cell(x, xs)\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `cell(x, xs)` before it is stored.",
    );
    check(
        "xs.append(torch.chunk(y, 2))\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `torch.chunk(y, 2)` before it is stored.",
    );
    check(
        "cell = nn.LSTMCell(4, 4)\nxs = fresh()\nfor x in y: xs = cell(x, xs)\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `cell(x, xs)` before it is stored.",
    );
    check("xs = ()\nxs = xs + more\n", at(|lines, site| lines.clone_fix(site)), "");
    check("xs = ()\nxs += more\n", at(|lines, site| lines.float_fix(site)), "");
}

#[test]
fn a_sum_is_detached_as_a_whole() {
    check_line("xs = 0; xs = xs + loss", "xs = 0; xs = (xs + loss).detach()");
    check_line("xs = torch.zeros(1); xs += loss", "xs = torch.zeros(1); xs += loss.detach()");
    check_line("xs.append(torch.chunk(y, 2)[0])", "xs.append(torch.chunk(y, 2)[0].detach())");
    check_line("a, b = torch.chunk(y, 2); xs.append(a)", "a, b = torch.chunk(y, 2); xs.append(a.detach())");
    check_line("a, b = list(y); xs.append(a)", "a, b = list(y); xs.append(a.detach())");
    check_line("a, b = net(y); xs.append(a)", "a, b = net(y); xs.append(a.detach())");
    check_line(
        "gru = nn.GRU(4, 4); a, b = gru(y); xs.append(b)",
        "gru = nn.GRU(4, 4); a, b = gru(y); xs.append(b.detach())",
    );
    check(
        "lstm = nn.LSTM(4, 4)\na, state = lstm(y, state)\nself.xs = state\n",
        at(|lines, site| lines.detach_fix(site)),
        "Detach the tensors in `state` before it is stored.",
    );
    check_line("xs = rows[-1] + loss", "xs = (rows[-1] + loss).detach()");
    check_line("rows = [a]; xs.append(rows[-1] + loss)", "rows = [a]; xs.append((rows[-1] + loss).detach())");
}

/// A policy whose log-probabilities are trained on once an episode has ended.
const EPISODES: &str = "\
class Agent:
    def __init__(self):
        self.log_probs = []

    def act(self, obs):
        dist = self.policy(obs)
        self.log_probs.append(dist.log_prob(dist.sample()))

    def learn(self, advantage):
        stacked = torch.stack(self.log_probs[-10:])
        loss = -(stacked * advantage).mean()
        self.optimizer.zero_grad()
        loss.backward()
";

#[test]
fn what_a_backward_pass_needs_is_emptied_and_not_detached() {
    let fix = |source: &str, line: &str| {
        let file = File::parse("a.py", source);
        let number = source.lines().position(|text| text.trim() == line).expect("it is there") as u32 + 1;
        let sites = file.lines().grow_sites(if line.starts_with("self") { "log_probs" } else { "losses" });
        let site = sites.iter().find(|site| site.spot.line == number).expect("it grows");
        file.lines().detach_fix(site).expect("there is something to change")
    };
    let append = "self.log_probs.append(dist.log_prob(dist.sample()))";
    let needed = fix(EPISODES, append);
    assert!(needed.description.contains("self.log_probs.clear()"), "{}", needed.description);
    assert!(needed.description.contains("line 13 needs their graphs"), "{}", needed.description);
    assert!(needed.edits.iter().all(|edit| !edit.content.contains("detach")), "{:?}", needed.edits);
    // Only their number, their values or something else goes into the loss.
    for other in ["advantage / len(self.log_probs)", "sum(x.item() for x in self.log_probs)", "advantage"] {
        let source = EPISODES.replace("torch.stack(self.log_probs[-10:])", other);
        assert!(fix(&source, append).description.contains("detach()` in"), "{other}");
    }
    let step = "\
losses = []
for batch in batches:
    loss = model(batch).mean()
    losses.append(loss)
    loss.backward()
print(sum(losses))
";
    assert!(fix(step, "losses.append(loss)").description.contains("detach()` in"));
    let unrolled =
        step.replace("    loss.backward()\n", "").replace("print(sum(losses))", "sum(losses).backward()");
    assert!(fix(&unrolled, "losses.append(loss)").description.contains("needs their graphs"));
}

#[test]
fn a_task_leaves_its_set_when_nothing_else_uses_the_set() {
    let discard = || at(|lines, site| lines.discard_fix(site));
    let source =
        "import asyncio\nxs = set()\nasync def f(c):\n    t = asyncio.create_task(c)\n    xs.add(t)\n";
    check(source, discard(), &format!("{source}    t.add_done_callback(xs.discard)\n"));
    // What waits for the tasks must find them.
    check(&format!("{source}    await asyncio.gather(*xs)\n"), discard(), "");
    check("xs = []\ndef f(t): xs.append(t)\n", discard(), "");
}

#[test]
fn a_list_that_is_sliced_is_not_to_become_a_deque() {
    let bound = || at(|lines, site| lines.bound_fix(site));
    let advice = "Empty `xs` once its contents have been used: `xs.clear()`, or drop old entries with `del`.";
    check("xs = []\ndef f(v):\n    xs.append(v)\n    return xs[-3:]\n", bound(), advice);
    // The slice of an element is no slice of the list.
    let advice = "Bound `xs`: `collections.deque(maxlen=...)`, or drop old entries.";
    check("xs = []\ndef f(v):\n    xs.append(v)\n    return xs[-1][:3]\n", bound(), advice);
    check(
        "xs = set()\ndef f(v): xs.add(v)\n",
        bound(),
        "Take each element out of `xs` when it is done with: `xs.discard(...)`.",
    );
}
