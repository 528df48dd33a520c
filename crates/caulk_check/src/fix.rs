//! Applying fixes: round after round, until nothing is left to apply.
//!
//! In one round fixes whose edits do not touch each other are applied together; the rest waits for the next round, when
//! the project has been looked at again. A file that would no longer parse keeps its old text, and the fix is refused.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::{Applicability, Diagnostic, Edit, LeakClass, Position};
use ruff_python_ast::PySourceType;

/// Rounds after which fixes that cause each other are given up.
pub const MAX_ROUNDS: usize = 20;

/// Texts by file, as the analysis names them.
pub type Texts = BTreeMap<String, String>;

/// What became of the fixes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed<T> {
    /// All texts, changed or not.
    pub texts: Texts,
    /// The fixes that were applied.
    pub applied: Vec<Applied>,
    /// Fixes that were not applied although they were asked for.
    pub refused: Vec<Refused>,
    /// Files that have fixes still and are to be left as they are.
    pub left: BTreeSet<String>,
    /// What the last look at the project found.
    pub last: T,
}

/// A fix that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its rule.
    pub class: LeakClass,
    /// The files that it changed.
    pub files: BTreeSet<String>,
}

/// A fix that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// Its rule.
    pub class: LeakClass,
    /// The file of the finding.
    pub file: String,
    /// The line of the finding when it was refused.
    pub line: u32,
}

/// Applies the fixes up to an applicability until none is left, but those that would change a file of `leave`. `look` finds
/// what is wrong with texts, `diagnostics` takes the fixable findings out of what it found.
pub fn fix<T>(
    texts: Texts,
    most: Applicability,
    leave: &BTreeSet<String>,
    mut look: impl FnMut(&Texts) -> T,
    diagnostics: impl Fn(&T) -> &[Diagnostic],
) -> Fixed<T> {
    let last = look(&texts);
    let (applied, refused, left) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut fixed = Fixed { texts, applied, refused, left, last };
    for _ in 0..MAX_ROUNDS {
        let round = Round::new(&fixed.texts, diagnostics(&fixed.last), most, leave, &fixed.refused);
        fixed.refused.extend(round.refused);
        if round.texts.is_empty() {
            break;
        }
        fixed.texts.extend(round.texts);
        fixed.applied.extend(round.applied);
        fixed.last = look(&fixed.texts);
    }
    let wanted = diagnostics(&fixed.last).iter().filter(|diagnostic| applicable(diagnostic, most));
    fixed.left = wanted.flat_map(files).filter(|file| leave.contains(file)).collect();
    fixed
}

/// Fixes that are applied together.
#[derive(Default)]
struct Round {
    texts: Texts,
    applied: Vec<Applied>,
    refused: Vec<Refused>,
}

impl Round {
    fn new(
        texts: &Texts,
        diagnostics: &[Diagnostic],
        most: Applicability,
        leave: &BTreeSet<String>,
        before: &[Refused],
    ) -> Self {
        let wanted: Vec<&Diagnostic> = diagnostics
            .iter()
            .filter(|diagnostic| applicable(diagnostic, most) && files(diagnostic).is_disjoint(leave))
            .filter(|diagnostic| !refusal(diagnostic).is_some_and(|refused| before.contains(&refused)))
            .collect();
        let apart = apart(&wanted);
        match changed(texts, &apart) {
            Some(changed) => Self { texts: changed, applied: applied(&apart), refused: Vec::new() },
            None => Self::one_by_one(texts, &apart),
        }
    }

    /// Finds out which fix it is that breaks a file.
    fn one_by_one(texts: &Texts, apart: &[&Diagnostic]) -> Self {
        let mut round = Self::default();
        let mut kept: Vec<&Diagnostic> = Vec::new();
        for diagnostic in apart {
            kept.push(diagnostic);
            if let Some(changed) = changed(texts, &kept) {
                round.texts = changed;
            } else {
                kept.pop();
                round.refused.extend(refusal(diagnostic));
            }
        }
        round.applied = applied(&kept);
        round
    }
}

fn applied(diagnostics: &[&Diagnostic]) -> Vec<Applied> {
    let one = |of: &&Diagnostic| Applied { class: of.class, files: files(of) };
    diagnostics.iter().map(one).collect()
}

/// The files that the fix of a finding changes.
fn files(diagnostic: &Diagnostic) -> BTreeSet<String> {
    diagnostic.fix.iter().flat_map(|fix| &fix.edits).map(|edit| edit.file.clone()).collect()
}

/// Whether a finding can be fixed by a program, at this level.
fn applicable(diagnostic: &Diagnostic, most: Applicability) -> bool {
    let fits = |applicability| applicability <= most && applicability != Applicability::DisplayOnly;
    diagnostic.fix.as_ref().is_some_and(|fix| fits(fix.applicability) && !fix.edits.is_empty())
}

fn refusal(diagnostic: &Diagnostic) -> Option<Refused> {
    let site = diagnostic.sites.first()?;
    Some(Refused { class: diagnostic.class, file: site.file.clone(), line: site.line })
}

/// The first fixes whose edits do not touch each other. The same edit in two fixes, such as an import, is one edit.
fn apart<'a>(wanted: &[&'a Diagnostic]) -> Vec<&'a Diagnostic> {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut apart = Vec::new();
    for diagnostic in wanted {
        let edits: Vec<&Edit> = diagnostic.fix.iter().flat_map(|fix| &fix.edits).collect();
        let free = |edit: &&Edit| taken.iter().all(|other| *other == *edit || !touch(other, edit));
        if edits.iter().all(free) {
            taken.extend(edits);
            apart.push(*diagnostic);
        }
    }
    apart
}

/// Whether two edits cannot both be applied.
pub fn touch(a: &Edit, b: &Edit) -> bool {
    let empty = |edit: &Edit| edit.start == edit.end;
    let overlap = a.start < b.end && b.start < a.end;
    let inside = |at: Position, edit: &Edit| edit.start <= at && at <= edit.end;
    a.file == b.file && (overlap || empty(a) && inside(a.start, b) || empty(b) && inside(b.start, a))
}

/// Texts that the fixes change; `None` where edits do not fit, or a file that did parse would not.
fn changed(texts: &Texts, fixes: &[&Diagnostic]) -> Option<Texts> {
    let fixes = fixes.iter().filter_map(|diagnostic| diagnostic.fix.as_ref());
    edited(texts, &fixes.flat_map(|fix| &fix.edits).collect::<Vec<_>>())
}

/// Texts that edits change; `None` if they do not fit, or a file that did parse would not. The same edit twice is one.
pub fn edited(texts: &Texts, edits: &[&Edit]) -> Option<Texts> {
    let mut files: BTreeMap<&str, BTreeSet<(Position, Position, &str)>> = BTreeMap::new();
    for edit in edits {
        files.entry(&edit.file).or_default().insert((edit.start, edit.end, &edit.content));
    }
    let mut changed = Texts::new();
    for (file, edits) in files {
        let old = texts.get(file)?;
        let edits: Vec<Edit> =
            edits.into_iter().map(|(start, end, content)| edit(file, start, end, content)).collect();
        let new = caulk_python::apply(old, &edits)?;
        if new == *old || parses(file, old) && !parses(file, &new) {
            return None;
        }
        changed.insert(file.to_owned(), new);
    }
    Some(changed)
}

fn edit(file: &str, start: Position, end: Position, content: &str) -> Edit {
    Edit { file: file.to_owned(), start, end, content: content.to_owned() }
}

fn parses(file: &str, text: &str) -> bool {
    let kind = PySourceType::try_from_path(file).unwrap_or_default();
    caulk_python::parse(text, kind).is_ok_and(|parsed| parsed.has_valid_syntax())
}

#[cfg(test)]
mod tests {
    use caulk_core::{Confidence, Fix, Proof, Scope, Severity, Site, SiteRole};

    use super::*;

    /// Finds every `old` of a text and offers `new` for it, with an import where one is needed.
    fn replacing(texts: &Texts, old: &str, new: &str, import: Option<&str>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (file, text) in texts {
            for (line, code) in (1..).zip(text.lines()) {
                for (at, _) in code.match_indices(old) {
                    let at = at as u32 + 1;
                    let start = Position { line, column: at };
                    let end = Position { line, column: at + old.len() as u32 };
                    let top = Position { line: 1, column: 1 };
                    let import = import.filter(|import| !text.contains(import));
                    let import = import.map(|import| edit(file, top, top, &format!("{import}\n")));
                    let edits = [edit(file, start, end, new)].into_iter().chain(import).collect();
                    found.push(diagnostic(
                        file,
                        line,
                        Fix { applicability: Applicability::Safe, description: String::new(), edits },
                    ));
                }
            }
        }
        found
    }

    fn diagnostic(file: &str, line: u32, fix: Fix) -> Diagnostic {
        let site = Site {
            role: SiteRole::Grows,
            file: file.to_owned(),
            line,
            end_line: line,
            column: 1,
            function: String::new(),
            text: String::new(),
            cell: None,
        };
        Diagnostic {
            class: LeakClass::UnboundedHistory,
            confidence: Confidence::Likely,
            scope: Scope::Run,
            severity: Severity::Warning,
            proof: Proof::FULL,
            message: String::new(),
            sites: vec![site],
            container: String::new(),
            chain: Vec::new(),
            fix: Some(fix),
            twins: Vec::new(),
            more_twins: 0,
        }
    }

    fn check(text: &str, old: &str, new: &str, import: Option<&str>, expected: &str, refused: usize) {
        let texts = Texts::from([("a.py".to_owned(), text.to_owned())]);
        let fixed = fix(
            texts,
            Applicability::Safe,
            &BTreeSet::new(),
            |texts| replacing(texts, old, new, import),
            |found| found.as_slice(),
        );
        assert_eq!(fixed.texts["a.py"], expected);
        assert_eq!(fixed.refused.len(), refused);
    }

    #[test]
    fn all_places_are_fixed_and_an_import_is_added_once() {
        check(
            "a = []\nb = []\n",
            "[]",
            "deque()",
            Some("import deque"),
            "import deque\na = deque()\nb = deque()\n",
            0,
        );
    }

    #[test]
    fn fixes_that_touch_wait_for_the_next_round() {
        check("x = aaa\n", "aa", "b", None, "x = ba\n", 0);
    }

    #[test]
    fn what_would_not_parse_is_refused() {
        check("a = 1\nb = 1\n", "= 1", "= (", None, "a = 1\nb = 1\n", 2);
    }

    #[test]
    fn fixes_that_cause_each_other_end() {
        let texts = Texts::from([("a.py".to_owned(), "x = 1\n".to_owned())]);
        let mut looks = 0;
        let fixed = fix(
            texts,
            Applicability::Safe,
            &BTreeSet::new(),
            |texts| {
                looks += 1;
                let old = if texts["a.py"].contains('1') { "1" } else { "2" };
                replacing(texts, old, if old == "1" { "2" } else { "1" }, None)
            },
            |found| found.as_slice(),
        );
        assert_eq!(fixed.applied.len(), MAX_ROUNDS);
        assert_eq!(looks, MAX_ROUNDS + 1);
    }

    #[test]
    fn a_file_that_is_to_be_left_stays() {
        let texts = Texts::from(["a.py", "b.py"].map(|file| (file.to_owned(), "x = 1\n".to_owned())));
        let fixed = fix(
            texts,
            Applicability::Safe,
            &BTreeSet::from(["b.py".to_owned()]),
            |texts| replacing(texts, "1", "2", None),
            |found| found.as_slice(),
        );
        assert_eq!((fixed.texts["a.py"].as_str(), fixed.texts["b.py"].as_str()), ("x = 2\n", "x = 1\n"));
        assert_eq!((fixed.applied.len(), fixed.left), (1, ["b.py".to_owned()].into()));
    }

    #[test]
    fn unsafe_fixes_are_applied_only_on_request() {
        let mut found = replacing(&Texts::from([("a.py".into(), "x = 1\n".into())]), "1", "2", None);
        for applicability in [Applicability::Unsafe, Applicability::DisplayOnly] {
            if let Some(fix) = &mut found[0].fix {
                fix.applicability = applicability;
            }
            assert!(!applicable(&found[0], Applicability::Safe));
            assert_eq!(applicable(&found[0], Applicability::Unsafe), applicability == Applicability::Unsafe);
            assert!(
                !applicable(&found[0], Applicability::DisplayOnly) || applicability == Applicability::Unsafe
            );
        }
    }
}
