//! When a value may be stored without its graph and nobody can tell.

mod file;

use caulk_core::{Applicability, Fix};
use caulk_python::{Project, SourceFile, detaches_safely};
use file::File;

const HEAD: &str = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n";

/// `code` stands in a file of its own; the line with `# here` stores.
fn check(code: &str, safe: bool) {
    let text = format!("{HEAD}{code}");
    let line = text.lines().position(|line| line.ends_with("# here")).expect("a line is marked") as u32 + 1;
    let file = File::parse("a.py", &text);
    assert_eq!(file.problems(), &[], "{text}");
    let fix = file.lines().grows_at(line).iter().find_map(|site| file.lines().detach_fix(site));
    if fix.as_ref().is_some_and(|fix| fix.description.contains("needs their graphs")) {
        assert!(!safe, "{text}");
        return;
    }
    let Some(fix @ Fix { applicability: Applicability::Unsafe, .. }) = fix else {
        panic!("nothing to detach: {text}\n{:?}", file.lines().grows_at(line));
    };
    let project = Project::new([SourceFile { path: "a.py".into(), text: text.clone() }]);
    assert_eq!(detaches_safely(&project, &fix), safe, "{text}");
}

/// A function that gathers a loss and ends with `last`.
fn gathers(last: &str, safe: bool) {
    check(
        &format!(
            "def f(model, loader):\n    losses = []\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        \
             losses.append(loss)  # here\n    {}\n",
            last.replace('\n', "\n    ")
        ),
        safe,
    );
}

/// A function that adds losses up and ends with `last`.
fn adds(last: &str, safe: bool) {
    check(
        &format!(
            "def f(model, loader):\n    total = 0.0\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        \
             total += loss  # here\n    {}\n",
            last.replace('\n', "\n    ")
        ),
        safe,
    );
}

#[test]
fn what_reads_numbers_cannot_tell() {
    for last in [
        "return [float(v) for v in losses]",
        "return sum(losses).item() / len(losses)",
        "return torch.stack(losses).mean().item()",
        "mean = sum(losses) / len(losses)\nprint(f\"{mean:.3f}\")",
        "for value in losses:\n    print(value.item())",
        "worst = max(losses)\nif worst > 3:\n    print(\"%.2f\" % worst)",
        "others = []\nothers.append(losses[-1])\nreturn float(others[0])",
        "first, *rest = losses\nreturn first.tolist(), len(rest)",
        "return losses[0].detach()",
    ] {
        gathers(last, true);
    }
    for last in
        ["return total.item()", "average = total / 3\nreturn float(average)", "print(f\"{total:.4f}\")"]
    {
        adds(last, true);
    }
}

#[test]
fn what_may_look_at_the_graph_is_no_number() {
    for last in [
        "return losses",
        "sum(losses).backward()",
        "print(losses)",
        "print(f\"{losses[0]}\")",
        "print(f\"{losses[0]!r:>20}\")",
        "print(\"%s\" % losses[0])",
        "report(losses)",
        "return torch.stack(losses).requires_grad",
        "return sum(losses).grad_fn",
        "self.losses = losses",
        "return lambda: losses",
        "def inner():\n    return losses\nreturn inner",
        "everything = locals()",
        "global losses",
        "yield losses",
        "return loss in losses",
        "return {id(v): float(v) for v in losses}",
        "model.history.append(losses[0])",
        "best = model.best\nbest += losses[0]",
        "other = losses\nreturn other",
        "torch.stack(losses, out=model.buffer)",
        "return [v for v in losses]",
        "table = {}\ntable[losses[0]] = 1",
        "with keep(losses):\n    pass",
        "losses.sort(key=rank)",
    ] {
        gathers(last, false);
    }
    for last in [
        "return total",
        "print(total)",
        "total.backward()",
        "model.total = total",
        "return {\"loss\": total / 3}",
    ] {
        adds(last, false);
    }
}

#[test]
fn what_others_have_is_theirs() {
    let around = |made: &str, parameters: &str| {
        format!(
            "def f({parameters}):\n    {made}\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        \
             losses.append(loss)  # here\n    return float(losses[0])\n"
        )
    };
    check(&around("losses = []", "model, loader"), true);
    check(&around("losses, names = [], []", "model, loader"), true);
    check(&around("losses = model.losses", "model, loader"), false);
    check(&around("pass", "model, loader, losses"), false);
    check(&around("losses = make()", "model, loader"), false);
    check(&around("others = []\n    losses = others", "model, loader"), true);
    check(&around("losses = loader.losses if loader else []", "model, loader"), false);
    let inside = |made: &str| {
        format!(
            "def f(model, loader, own):\n    history = {made}\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        \
             history[\"loss\"].append(loss)  # here\n    return float(history[\"loss\"][0])\n"
        )
    };
    check(&inside("{\"loss\": []}"), true);
    check(&inside("{\"loss\": own}"), false);
    check(&inside("dict(own)"), false);
    // A module's variables are anybody's.
    check(
        "losses = []\nfor x, y in loader:\n    loss = F.mse_loss(model(x), y)\n    losses.append(loss)  # here\n",
        false,
    );
}

#[test]
fn what_is_no_tensor_for_certain_may_have_no_detach() {
    let stores = |made: &str, safe| {
        check(
            &format!(
                "def f(model, loader, n=2):\n    criterion = nn.MSELoss()\n    losses = []\n    for x, y in loader:\n        {}\n        \
                 losses.append(loss)  # here\n    return [float(v) for v in losses]\n\n\ndef iou(a, b):\n    return torch.minimum(a, b).mean()\n\n\n\
                 def maybe(a):\n    if a:\n        return torch.abs(a)\n",
                made.replace('\n', "\n        ")
            ),
            safe,
        );
    };
    stores("loss = criterion(model(x), y)", true);
    stores("loss = F.mse_loss(model(x), y) / 2", true);
    stores("loss = -F.mse_loss(model(x), y).log()", true);
    stores("loss = iou(model(x), y)", true);
    stores("loss = model(x)\nloss.backward()", true);
    stores("loss = model(x)", false);
    stores("loss = maybe(x)", false);
    stores("loss = (model(x) - y).mean()", false);
    stores("loss = F.mse_loss(model(x), y) * n", false);
    stores("loss = model(x)\nloss.backward()\nloss = model(y)", false);
    stores("loss = F.mse_loss(model(x), y) if x else model(x)", false);
    stores("loss = F.mse_loss(model(x), y)\nloss.data = y", false);
    stores("F = model\nloss = F.mse_loss(model(x), y)", false);
    // Somebody's own engine may have `backward` and nothing else.
    check(
        "class Value:\n    def backward(self):\n        pass\n\n\ndef f(model, loader):\n    losses = []\n    for x in loader:\n        \
         loss = model(x)\n        loss.backward()\n        losses.append(loss)  # here\n    return [float(v) for v in losses]\n",
        false,
    );
}
