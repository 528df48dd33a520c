//! Projects of mangled programs, and a check of one as a whole.

use caulk_core::Applicability;
use caulk_python::{Analysis, Project, SourceFile, apply};
use caulk_rules::{RULES, check};

use crate::mangle::Mangler;

/// A project of one to three mangled programs that may import each other.
pub(crate) fn project(mangler: &mut Mangler, corpus: &[&str]) -> Vec<SourceFile> {
    let paths = ["a.py", "b.py", "pkg/__init__.py"];
    let count = 1 + mangler.below(6).saturating_sub(3);
    let imports = "from b import *\nfrom pkg import f, C\nimport a\n";
    let file = |path: &&str| {
        let start = if mangler.below(2) == 0 { imports } else { "" };
        SourceFile { path: (*path).into(), text: start.to_owned() + &mangler.program(corpus) }
    };
    paths[..count].iter().map(file).collect()
}

/// The whole way of a check: analysis, every rule, reasons for silence, fixes.
///
/// # Panics
/// Where the edits of a fix do not fit the text, or what they leave of a sound program does not parse.
pub(crate) fn examine(sources: &[SourceFile]) {
    let analysis = Analysis::new(Project::new(sources.to_vec()));
    let sound = analysis.problems().is_empty();
    for source in sources {
        for line in [0, 1, 7, source.text.lines().count() as u32 + 1] {
            let _ = analysis.silence(&source.path, line);
        }
    }
    for diagnostic in check(&analysis, RULES) {
        let Some(fix) = diagnostic.fix.filter(|fix| fix.applicability != Applicability::DisplayOnly) else {
            continue;
        };
        let edited = |source: &SourceFile| {
            let edits: Vec<_> = fix.edits.iter().filter(|edit| edit.file == source.path).cloned().collect();
            let text = apply(&source.text, &edits).unwrap_or_else(|| panic!("{fix:?} does not fit its text"));
            SourceFile { path: source.path.clone(), text }
        };
        let fixed = Project::new(sources.iter().map(edited));
        assert!(!sound || fixed.problems().is_empty(), "{fix:?} leaves {:?}", fixed.problems());
    }
}
