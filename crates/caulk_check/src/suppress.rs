//! Comments that silence a rule: `# caulk: ignore[rule, rule] reason`.
//!
//! At the end of a statement, or of one of its lines, it speaks of that statement; alone on a line, of the statement
//! below; `# caulk: ignore-file[rule]` speaks of the whole file. Without brackets it means every rule.

use std::ops::RangeInclusive;

use caulk_core::{Diagnostic, Problem};
use caulk_rules::RULES;
use ruff_python_ast::PySourceType;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::{Ranged, TextRange};

use crate::nearest::nearest;
use crate::selection::Selection;

/// One rule in one comment, or all rules where none is named.
#[derive(Debug)]
struct Suppression {
    rule: Option<String>,
    lines: Option<RangeInclusive<u32>>,
    line: u32,
    column: u32,
    used: bool,
}

/// The suppressions of one file.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    file: String,
    all: Vec<Suppression>,
}

impl Suppressions {
    /// Reads the comments of a file.
    pub(crate) fn new(file: &str, text: &str) -> Self {
        let mut found = Self { file: file.to_owned(), all: Vec::new() };
        // Nearly no file has any, and reading tokens costs as much as parsing.
        if text.contains("caulk:") {
            found.read(text);
        }
        found
    }

    fn read(&mut self, text: &str) {
        let lines = Lines::new(text);
        let kind = PySourceType::try_from_path(&self.file).unwrap_or_default();
        // Nothing is reported in a file that is not parsed.
        let Ok(parsed) = caulk_python::parse(text, kind) else { return };
        // Where the statement at hand began, and comments that wait for its end.
        let mut statement: Option<u32> = None;
        let mut waiting: Vec<(TextRange, bool)> = Vec::new();
        for token in parsed.tokens() {
            let range = token.range();
            match token.kind() {
                TokenKind::Comment => waiting.push((range, statement.is_none())),
                TokenKind::Newline => {
                    let last = lines.of(range.start().to_usize());
                    let first = statement.take().unwrap_or(last);
                    for (comment, alone) in waiting.drain(..) {
                        let own = lines.of(comment.start().to_usize());
                        self.comment(&lines, text, comment, if alone { own..=last } else { first..=last });
                    }
                }
                TokenKind::NonLogicalNewline | TokenKind::Indent | TokenKind::Dedent => (),
                _ => {
                    statement.get_or_insert_with(|| lines.of(range.start().to_usize()));
                }
            }
        }
        // Below the last statement.
        for (comment, _) in waiting {
            let own = lines.of(comment.start().to_usize());
            self.comment(&lines, text, comment, own..=own);
        }
    }

    fn comment(&mut self, lines: &Lines, text: &str, range: TextRange, statement: RangeInclusive<u32>) {
        let start = range.start().to_usize();
        let comment = text.get(start..range.end().to_usize()).unwrap_or("");
        for (at, _) in comment.match_indices('#') {
            let Some((whole_file, rules)) = directive(&comment[at..]) else { continue };
            let (line, column) = lines.place(text, start + at);
            let lines = (!whole_file).then(|| statement.clone());
            let one = |rule| Suppression { rule, lines: lines.clone(), line, column, used: false };
            match rules {
                None => self.all.push(one(None)),
                Some(rules) => self.all.extend(rules.into_iter().map(|rule| one(Some(rule)))),
            }
        }
    }

    /// Whether a diagnostic of this file is silenced.
    pub(crate) fn silence(&mut self, diagnostic: &Diagnostic) -> bool {
        let Some(site) = diagnostic.sites.first() else { return false };
        let mut silenced = false;
        for suppression in &mut self.all {
            let here = suppression.lines.as_ref().is_none_or(|lines| {
                *lines.start() <= site.end_line.max(site.line) && site.line <= *lines.end()
            });
            let rule = suppression.rule.as_deref().is_none_or(|rule| rule == diagnostic.class.as_str());
            if here && rule {
                suppression.used = true;
                silenced = true;
            }
        }
        silenced
    }

    /// What is wrong with the comments, once every diagnostic was shown to [`Self::silence`].
    pub(crate) fn notices(&self, selection: &Selection) -> Vec<Problem> {
        self.all.iter().filter_map(|suppression| self.notice(suppression, selection)).collect()
    }

    fn notice(&self, suppression: &Suppression, selection: &Selection) -> Option<Problem> {
        if suppression.used {
            return None;
        }
        let message = match &suppression.rule {
            None => "unused suppression: nothing is found here".to_owned(),
            Some(name) => match RULES.iter().find(|rule| rule.class.as_str() == name) {
                Some(rule) if !selection.has(rule.class) => return None,
                Some(_) => format!("unused suppression: no `{name}` is found here"),
                None => match nearest(name, RULES.iter().map(|rule| rule.class.as_str())) {
                    Some(meant) => format!("no rule is called `{name}`; did you mean `{meant}`?"),
                    None => format!("no rule is called `{name}`"),
                },
            },
        };
        let (line, column) = (Some(suppression.line), Some(suppression.column));
        Some(Problem { file: self.file.clone(), line, column, message })
    }
}

/// Whether a comment is a suppression: of the whole file or not, and of which rules.
fn directive(comment: &str) -> Option<(bool, Option<Vec<String>>)> {
    let text = comment.trim_start_matches('#').trim_start().strip_prefix("caulk:")?.trim_start();
    let text = text.strip_prefix("ignore")?;
    let (whole_file, text) = match text.strip_prefix("-file") {
        Some(text) => (true, text),
        None => (false, text),
    };
    if let Some(list) = text.trim_start().strip_prefix('[') {
        let (list, _) = list.split_once(']')?;
        let names = list.split(',').map(|name| name.trim().to_owned());
        return Some((whole_file, Some(names.filter(|name| !name.is_empty()).collect())));
    }
    let ends = text.is_empty() || text.starts_with(|c: char| c.is_whitespace());
    ends.then_some((whole_file, None))
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes
            .iter()
            .enumerate()
            .filter(|(at, byte)| **byte == b'\n' || **byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        Self([0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// The line of an offset, from 1.
    fn of(&self, offset: usize) -> u32 {
        self.0.partition_point(|start| *start <= offset) as u32
    }

    fn place(&self, text: &str, offset: usize) -> (u32, u32) {
        let line = self.of(offset);
        let before = text.get(self.0[line as usize - 1]..offset).unwrap_or("");
        (line, before.trim_start_matches('\u{feff}').chars().count() as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Job, check as check_project};

    /// Lines with a finding, and notices.
    fn check(source: &str, found: &[u32], notices: &[(u32, &str)]) {
        let selection = Selection::standard();
        let outcome = check_project(Job::of_text("a.py", source, &selection));
        let lines: Vec<u32> = outcome.diagnostics.iter().map(|diagnostic| diagnostic.sites[0].line).collect();
        assert_eq!(lines, found, "{source}");
        let said: Vec<_> = outcome
            .notices
            .iter()
            .map(|notice| (notice.line.unwrap_or(0), notice.message.as_str()))
            .collect();
        assert_eq!(said, notices, "{source}");
    }

    fn method(decorator: &str) -> String {
        format!(
            "from functools import cache, lru_cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]\nclass A:\n{decorator}\n    def f(self): pass\n"
        )
    }

    #[test]
    fn a_comment_silences_its_own_statement() {
        check(&method("    @cache"), &[3], &[]);
        check(&method("    @cache  # caulk: ignore[cached-method] one instance"), &[], &[]);
        check(&method("    @cache  # caulk: ignore"), &[], &[]);
        check(&method("    @cache  # noqa  # caulk:ignore[ cached-method ]"), &[], &[]);
        check(&method("    @lru_cache(\n        None\n    )  # caulk: ignore[cached-method]"), &[], &[]);
        check(&method("    @lru_cache(  # caulk: ignore[cached-method]\n        None\n    )"), &[], &[]);
    }

    #[test]
    fn a_comment_alone_on_its_line_silences_the_next_statement() {
        check(&method("    # caulk: ignore[cached-method] one instance\n    @cache"), &[], &[]);
        check(&method("    # caulk: ignore[cached-method]\n\n    # more\n    @cache"), &[], &[]);
    }

    #[test]
    fn a_whole_file_can_be_silenced() {
        check(&format!("# caulk: ignore-file[cached-method]\n{}", method("    @cache")), &[], &[]);
        check(&format!("{}# caulk: ignore-file\n", method("    @cache")), &[], &[]);
    }

    #[test]
    fn what_silences_nothing_is_reported() {
        let unused = "unused suppression: no `cached-method` is found here";
        check("x = 1  # caulk: ignore[cached-method]\n", &[], &[(1, unused)]);
        check("x = 1  # caulk: ignore\n", &[], &[(1, "unused suppression: nothing is found here")]);
        check(
            "x = 1\n# caulk: ignore[cached-methd]\n",
            &[],
            &[(2, "no rule is called `cached-methd`; did you mean `cached-method`?")],
        );
    }

    #[test]
    fn only_comments_count() {
        check(&method("    @cache  # caulk: ignored").replace("pass", "'# caulk: ignore'"), &[3], &[]);
        check(&method("    @cache\n    # caulk is great"), &[3], &[]);
    }
}
