//! No input makes the parser, the questions or the fixes panic, and what they edit parses.

mod mangle;

mod file;

use caulk_python::{GrowSite, Lines, Owner, apply};
use file::File;
use mangle::Mangler;

const PROGRAMS: &[&str] = &[include_str!("programs/trainer.py"), include_str!("programs/oddities.py")];

/// Asks everything about every line and every name.
fn interrogate(text: &str) {
    let file = File::parse("fuzz.py", text);
    let sound = file.problems().is_empty();
    let lines = file.lines();
    for line in 0..text.lines().count() as u32 + 2 {
        let _ = (lines.function_at(line), lines.statement_at(line), lines.loops_at(line), lines.line(line));
        for fix in [
            lines.queue_fix(line),
            lines.close_figure_fix(line),
            lines.remove_handle_fix(line),
            lines.grad_none_fix(line),
            lines.zero_grad_fix(line),
        ] {
            check_fix(text, sound, fix.as_ref());
        }
        for site in lines.grows_at(line) {
            check_site(&lines, text, sound, &site);
        }
    }
    for name in ["xs", "self.history", "history['val']", "", "[", "a.b.", "<module>"] {
        let _ = (lines.grow_sites(name), lines.creations(name), lines.calls(name), lines.decorated(name));
        let _ = lines.facts(name, "Trainer.step");
        let _ = lines.facts_of(name, &Owner::Class(String::new()));
        check_fix(text, sound, lines.uncache_fix(name).as_ref());
    }
}

fn check_site(lines: &Lines<'_>, text: &str, sound: bool, site: &GrowSite) {
    let _ = lines.facts(&site.container, &site.spot.function);
    for fix in [
        lines.detach_fix(site),
        lines.float_fix(site),
        lines.bound_fix(site),
        lines.clear_fix(site),
        lines.clone_fix(site),
        lines.traceback_fix(site),
    ] {
        check_fix(text, sound, fix.as_ref());
    }
}

fn check_fix(text: &str, sound: bool, fix: Option<&caulk_core::Fix>) {
    let Some(fix) = fix.filter(|fix| !fix.edits.is_empty()) else { return };
    let changed = apply(text, &fix.edits);
    assert!(changed.is_some(), "{fix:?}");
    if let (true, Some(changed)) = (sound, changed) {
        let again = File::parse("fuzz.py", &changed);
        assert!(again.problems().is_empty(), "{:?}\n{fix:?}\n{changed}", again.problems());
        assert_ne!(text, changed, "{fix:?}");
    }
}

#[test]
fn whole_programs_are_interrogated() {
    for program in PROGRAMS {
        assert_eq!(File::parse("p.py", program).problems(), &[]);
        interrogate(program);
        interrogate(&program.replace('\n', "\r\n"));
        interrogate(&format!("\u{feff}{program}"));
        interrogate(&program.replace("    ", "\t"));
    }
}

#[test]
fn mangled_programs_do_not_panic() {
    // Everything is asked of every line: parts of the programs are answered sooner.
    let lines = PROGRAMS.iter().flat_map(|program| program.lines()).collect::<Vec<_>>();
    let parts: Vec<_> = lines.chunks(30).map(|part| part.join("\n")).collect();
    let corpus: Vec<_> = parts.iter().map(String::as_str).collect();
    for seed in 0..250 {
        interrogate(&Mangler::new(seed).program(&corpus));
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = 20_000;
    let programs = [
        format!("x = {}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("x = {}1{}", "[".repeat(deep), "]".repeat(deep)),
        format!("xs.append({}1{})", "f(".repeat(deep), ")".repeat(deep)),
        format!("x = 1{}", " + a".repeat(deep)),
        format!("x = {}1", "-".repeat(deep)),
        format!("x = a{}", ".b".repeat(deep)),
        format!("x = a{}", "()".repeat(deep)),
        format!("x = {}1", "lambda: ".repeat(deep)),
        format!("x = {}1", "1 if 1 else ".repeat(deep)),
        "(".repeat(deep),
        "{[(".repeat(deep),
        (0..300).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect::<Vec<_>>().concat()
            + &" ".repeat(300)
            + "xs.append(1)\n",
        (0..200).map(|depth| format!("{}def f(a):\n", " ".repeat(depth))).collect::<Vec<_>>().concat()
            + &" ".repeat(200)
            + "a.append(1)\n",
    ];
    for program in programs {
        let file = File::parse("deep.py", &program);
        let lines = file.lines();
        let _ = (lines.grow_sites("xs"), lines.statement_at(1), lines.facts("a", "f"));
    }
}

#[test]
fn recursion_between_names_ends() {
    let programs = [
        "a = b\nb = a\na.append(1)\n",
        "def f(x):\n  f(x)\n  x.append(1)\nf(xs)\n",
        "def f(x): g(x)\ndef g(y):\n  f(y)\n  y.append(1)\nf(xs)\n",
        "class A(B): pass\nclass B(A):\n  def f(self): self.x.append(1)\n",
        "class A:\n  def __init__(self, a): self.a = A(self.a)\n  def f(self): self.a.a.a.append(1)\n",
        "def f(): return f()\nf().append(1)\n",
        "x = x.x\nx.x.x.append(x)\n",
    ];
    for program in programs {
        interrogate(program);
    }
    // Many ways to one place stay few answers.
    let calls = (0..300).map(|at| format!("put(self.xs, {at})\n")).collect::<Vec<_>>().concat();
    let file = File::parse("many.py", &format!("def put(store, v): store.append(v)\n{calls}"));
    assert!(file.lines().grow_sites("xs").len() <= 300);
}

#[test]
fn a_large_file_is_indexed_whole() {
    // Work that grows with the square of the classes would not end in a test's time.
    let class = |at: usize| {
        format!(
            "class C{at}:\n    def step(self, v):\n        self.xs.append(v)\n        out = self.rows[v]\n        out.add(v)\n"
        )
    };
    let file = File::parse("large.py", &(0..4000).map(class).collect::<Vec<_>>().concat());
    assert_eq!(file.lines().grow_sites("xs").len(), 4000);
}
