//! No input makes a check panic or run for ever. `cargo run --release --example mangle` tries for longer.

use caulk_python::SourceFile;
use caulk_rules::RULES;

use crate::examine::{examine, project};
use crate::mangle::Mangler;
use crate::page::Page;

/// Every program of every page.
fn corpus() -> Vec<String> {
    let programs = RULES.iter().flat_map(|rule| Page::parse(rule.explanation).programs);
    programs.flat_map(|program| program.sources()).map(|source| source.text).collect()
}

fn examine_text(text: String) {
    examine(&[SourceFile { path: "a.py".into(), text }]);
}

#[test]
fn mangled_programs_are_answered() {
    let programs = corpus();
    let corpus: Vec<_> = programs.iter().map(String::as_str).collect();
    for seed in 0..400 {
        examine(&project(&mut Mangler::new(seed), &corpus));
    }
}

#[test]
fn every_prefix_of_a_program_is_answered() {
    // A prefix at each line of each program: what an editor sends while somebody types.
    for program in corpus() {
        let ends = program.match_indices('\n').map(|(at, _)| at);
        ends.for_each(|end| examine_text(program[..end].to_owned()));
    }
}

#[test]
fn line_endings_and_indentation_do_not_matter() {
    for program in corpus() {
        examine_text(program.replace('\n', "\r\n"));
        examine_text(program.replace('\n', "\r"));
        examine_text(format!("\u{feff}{program}"));
        examine_text(program.replace("    ", "\t"));
    }
}

#[test]
fn deep_nesting_is_answered() {
    let deep = 5_000;
    let repeated = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{1: ", "1", "}"),
        ("f(", "loss", ")"),
        ("f(x=", "loss", ")"),
        ("", "1", " + a"),
        ("a + (", "loss", ")"),
        ("-", "1", ""),
        ("not ", "1", ""),
        ("", "a", ".b"),
        ("", "a", "()"),
        ("", "a", "[0]"),
        ("lambda: ", "1", ""),
        ("1 if a else ", "1", ""),
        ("[x for x in ", "xs", "]"),
        ("(y := ", "1", ")"),
        ("", "a", " and b"),
        ("", "a", " < b"),
    ];
    for (before, inner, after) in repeated {
        let nested = format!("{}{inner}{}", before.repeat(deep), after.repeat(deep));
        examine_text(format!("for x in loader:\n    xs.append({nested})\n    y = {nested}\n    {nested}\n"));
    }
    let blocks =
        ["if x:", "for x in xs:", "while x:", "def f(self, x):", "class C:", "with f() as x:", "try:"];
    for head in blocks {
        let heads: Vec<_> = (0..95).map(|depth| format!("{}{head}\n", " ".repeat(depth))).collect();
        examine_text(heads.concat() + &" ".repeat(95) + "self.xs.append(x)\n");
    }
    examine_text(format!("xs.append({}1{})\n", "f'{".repeat(500), "}'".repeat(500)));
    let branches: Vec<_> = (0..deep).map(|at| format!("elif x == {at}:\n    xs.append(x)\n")).collect();
    examine_text(format!("if x:\n    pass\n{}", branches.concat()));
}

#[test]
fn sums_of_many_terms_are_answered() {
    let sum = vec!["self.xs"; 80].join(" + ");
    examine_text(format!("class A:\n    def training_step(self, x):\n        self.xs = {sum}\n"));
}

#[test]
fn long_lines_are_answered() {
    let long = 1 << 20;
    for text in [
        "x".repeat(long),
        format!("x = '{}'", "y".repeat(long)),
        format!("x = [{}]", "1, ".repeat(long / 3)),
        format!("f({})", "loss, ".repeat(long / 6)),
        "xs.append(x); ".repeat(long / 14),
        format!("# {}", "x".repeat(long)),
        "\\\n".repeat(long / 2),
        "a = ".repeat(long / 40) + "b",
        "(".repeat(long / 16),
        "f'{".repeat(long / 3),
    ] {
        examine_text(text);
    }
}

#[test]
fn long_files_are_answered() {
    let lines = 50_000;
    let methods = (0..lines / 4).map(|at| {
        format!("    def step{at}(self, batch):\n        loss = self.model(batch)\n        self.losses{}.append(loss)\n        return self.step{}(batch)\n", at % 7, at + 1)
    });
    let calls = (0..lines / 3)
        .map(|at| format!("def f{at}(xs, x):\n    xs.append(x)\n    f{}(xs, f{}(xs, x))\n", at + 1, at / 2));
    let aliases = (0..lines).map(|at| format!("x{} = x{at} if x{at} else [x{at}]\n", at + 1));
    for text in [
        format!("class Trainer:\n{}", methods.collect::<Vec<_>>().concat()),
        calls.collect::<Vec<_>>().concat(),
        aliases.collect::<Vec<_>>().concat(),
        format!("def f():\n    x = 1\n{}", "    for x in x:\n        x = x + x\n".repeat(lines / 2)),
        format!(
            "def f(self, x):\n    while x:\n{}",
            "        x = self.model(x)\n        self.xs.append(x)\n".repeat(lines / 2)
        ),
        "if a:\n    x = model(x)\nelse:\n    x = []\n".repeat(lines / 4),
    ] {
        examine_text(text);
    }
}

#[test]
fn a_web_of_containers_is_answered() {
    // Thirty lists, each made when it is first asked for and each held by all others: owners of owners of owners.
    let lists = 30;
    let made = (0..lists).map(|at| format!("        if self.x{at} is None:\n            self.x{at} = []\n"));
    let held =
        (0..lists * lists).map(|at| format!("        self.x{}.append(self.x{})\n", at / lists, at % lists));
    let body = made.chain(held).collect::<Vec<_>>().concat();
    let head = "class Web:\n    def training_step(self, batch):\n";
    examine_text(format!("{head}{body}        self.x0.append(self.model(batch))\n"));
}

#[test]
fn circles_end() {
    for text in [
        "a = b\nb = a\na.append(1)\n",
        "def f(x):\n    f(x)\n    x.append(1)\n    return f(f(x))\nfor x in loader:\n    f(xs)\n",
        "def f(x): return g(x)\ndef g(y):\n    y.append(f(y))\n    return f(y)\nwhile True: f(xs)\n",
        "class A(B): pass\nclass B(A):\n    def training_step(self, b): self.x.append(self.training_step(b))\n",
        "class A(A):\n    def __init__(self, a): self.a = A(self.a)\n    def f(self): self.a.a.a.append(self.f())\n",
        "x = x.x\nwhile True:\n    x = x.x[x](x)\n    x.x.append(x)\n",
        "f = lambda: f\nf = f()()\nf().append(f)\n",
        "def f(g): return g(g)\nf(f)\n",
        "from a import *\nfrom a import x\nx = x\nimport a\na.a.a.append(a)\n",
        "@f\ndef f(f): f = f(f)\n",
        "class A:\n    x = property(lambda self: self.x)\n    def f(self): self.x.x.append(self.x)\n",
    ] {
        examine_text(text.to_owned());
    }
}
