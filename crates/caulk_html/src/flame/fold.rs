//! Stacks as people think of them: an import is one frame, a call of a module is the module's own frame.

use caulk_core::{StackFrame, StackUse};

use crate::words;

/// One frame of the picture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Label {
    Process(String),
    /// Own frames sort before those of libraries.
    Own {
        function: String,
        file: String,
        line: u32,
    },
    /// `import torch`, with all that it runs.
    Import(String),
    Library {
        function: String,
        file: String,
        line: u32,
    },
    Cut,
    Rest,
    Native,
    Threads,
}

impl Label {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Process(name) => name.clone(),
            Self::Own { function, file, line } | Self::Library { function, file, line } => {
                format!("{function} {}:{line}", file.rsplit('/').next().unwrap_or(file))
            }
            Self::Import(module) => format!("import {module}"),
            Self::Cut => "… frames further out".into(),
            Self::Rest => "stacks with little memory".into(),
            Self::Native => "no Python on the stack".into(),
            Self::Threads => "threads that work for it".into(),
        }
    }

    pub(crate) fn place(&self) -> String {
        match self {
            Self::Own { function, file, line } | Self::Library { function, file, line } => {
                format!("{file}:{line} in {function}")
            }
            _ => self.name(),
        }
    }

    pub(crate) const fn class(&self) -> &'static str {
        match self {
            Self::Own { .. } => "own",
            Self::Library { .. } => "library",
            Self::Import(_) => "import",
            _ => "other",
        }
    }

    pub(crate) const fn is_library(&self) -> bool {
        matches!(self, Self::Library { .. })
    }
}

/// Frames that only call something: Python's import system, and the calls of a framework's modules with their hooks.
fn is_import(frame: &StackFrame) -> bool {
    frame.file.starts_with("<frozen importlib") || frame.file.contains("/importlib/_bootstrap")
}

/// `Module.__call__` of a framework: a frame of `module.py` whose function only passes the call on.
fn passes_on(frame: &StackFrame) -> bool {
    let function = frame.function.rsplit('.').next().unwrap_or_default();
    !frame.own
        && file_stem(&frame.file) == "module"
        && matches!(function, "_call_impl" | "_wrapped_call_impl" | "__call__" | "_slow_forward" | "inner")
}

fn file_stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Name of a module by its file: the part below `site-packages` or the standard library.
fn module(file: &str) -> String {
    let path = file.strip_suffix(".py").unwrap_or(file);
    let below = ["/site-packages/", "/dist-packages/", "/lib-dynload/"];
    let below = below.into_iter().find_map(|folder| path.rsplit_once(folder).map(|(_, below)| below));
    let below = below.or_else(|| {
        let (_, rest) = path.rsplit_once("/lib/python")?;
        rest.split_once('/').map(|(_, below)| below)
    });
    let below = below.unwrap_or_else(|| path.rsplit('/').next().unwrap_or(path));
    below.strip_suffix("/__init__").unwrap_or(below).replace('/', ".")
}

/// The frames of a stack, the outermost first.
pub(crate) fn folded(stack: &StackUse) -> Vec<Label> {
    let mut out = vec![Label::Process(words::process(&stack.process))];
    if stack.rest {
        out.push(Label::Rest);
    } else if stack.frames.is_empty() {
        out.push(Label::Native);
    } else if stack.truncated {
        out.push(Label::Cut);
    }
    let mut frames = stack.frames.as_slice();
    while let Some((frame, rest)) = frames.split_first() {
        if is_import(frame) {
            let after = frames.iter().position(|frame| !is_import(frame)).unwrap_or(frames.len());
            frames = &frames[after..];
            // A module of a library with all that its import runs is one frame; one of the user's own stays open.
            match frames.first() {
                Some(first) if first.own => {}
                Some(first) => {
                    out.push(Label::Import(module(&first.file)));
                    let own = frames.iter().position(|frame| frame.own).unwrap_or(frames.len());
                    frames = &frames[own..];
                }
                None => out.push(Label::Import("a module".into())),
            }
        } else {
            if !passes_on(frame) {
                out.push(label(frame));
            }
            frames = rest;
        }
    }
    if stack.borrowed && !stack.frames.is_empty() {
        out.push(Label::Threads);
    }
    without_passages(out)
}

/// Leaves out the frames of libraries between two own frames, all but the one that the first calls: a loader or a framework
/// that calls back is one frame.
fn without_passages(labels: Vec<Label>) -> Vec<Label> {
    let last_own = labels.iter().rposition(|label| matches!(label, Label::Own { .. })).unwrap_or(0);
    let mut out: Vec<Label> = Vec::with_capacity(labels.len());
    for (index, label) in labels.into_iter().enumerate() {
        let goes_on = index < last_own && label.is_library() && out.last().is_some_and(Label::is_library);
        if !goes_on {
            out.push(label);
        }
    }
    out
}

fn label(frame: &StackFrame) -> Label {
    let (function, file, line) = (frame.function.clone(), frame.file.clone(), frame.line);
    if frame.own { Label::Own { function, file, line } } else { Label::Library { function, file, line } }
}

#[cfg(test)]
mod tests {
    use caulk_core::{ProcessRef, Sampled, VerdictUnit};

    use super::*;

    fn stack(frames: &[(&str, &str, bool)]) -> StackUse {
        let frame = |(file, function, own): &(&str, &str, bool)| StackFrame {
            file: (*file).into(),
            line: 1,
            function: (*function).into(),
            own: *own,
        };
        StackUse {
            process: ProcessRef::main(),
            frames: frames.iter().map(frame).collect(),
            rest: false,
            truncated: false,
            borrowed: false,
            live: Sampled { bytes: 1.0, deviation: 0.0 },
            growth: 0.0,
            allocated: 0.0,
            unit: VerdictUnit::Epoch,
        }
    }

    fn check(frames: &[(&str, &str, bool)], expected: &[&str]) {
        let labels = folded(&stack(frames));
        assert_eq!(labels.iter().skip(1).map(Label::name).collect::<Vec<_>>(), expected);
    }

    const LOADS: (&str, &str, bool) = ("<frozen importlib._bootstrap>", "_find_and_load", false);

    #[test]
    fn an_import_is_one_frame_whatever_it_runs() {
        let torch = ("/p/lib/python3.11/site-packages/torch/__init__.py", "<module>", false);
        let inner = ("/p/lib/python3.11/site-packages/torch/_utils.py", "<module>", false);
        let own = ("train.py", "<module>", true);
        check(&[own, LOADS, LOADS, torch, LOADS, inner], &["<module> train.py:1", "import torch"]);
        let json = ("/usr/lib/python3.11/json/decoder.py", "<module>", false);
        check(&[own, LOADS, json], &["<module> train.py:1", "import json.decoder"]);
        check(&[own, LOADS], &["<module> train.py:1", "import a module"]);
    }

    #[test]
    fn an_own_module_that_is_imported_stays_open() {
        let (main, model) = (("train.py", "<module>", true), ("model.py", "build", true));
        check(&[main, LOADS, LOADS, model], &["<module> train.py:1", "build model.py:1"]);
    }

    #[test]
    fn a_library_that_calls_back_is_one_frame() {
        let (main, item) = (("train.py", "main", true), ("data.py", "Crops.__getitem__", true));
        let [iter, fetch, stack] = ["iter", "fetch", "stack"].map(|name| ("/lib/loader.py", name, false));
        let shown = [
            "main train.py:1",
            "iter loader.py:1",
            "Crops.__getitem__ data.py:1",
            "fetch loader.py:1",
            "stack loader.py:1",
        ];
        check(&[main, iter, fetch, item, fetch, stack], &shown);
    }

    #[test]
    fn calls_of_modules_are_the_modules_own_frames() {
        let module = "/p/lib/python3.11/site-packages/torch/nn/modules/module.py";
        let linear = ("/p/lib/python3.11/site-packages/torch/nn/modules/linear.py", "Linear.forward", false);
        let calls = [(module, "Module._wrapped_call_impl", false), (module, "Module._call_impl", false)];
        let own = ("train.py", "Net.forward", true);
        check(&[own, calls[0], calls[1], linear], &["Net.forward train.py:1", "Linear.forward linear.py:1"]);
    }
}
