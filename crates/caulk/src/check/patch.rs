//! The patch of one file, as `git apply` and `patch` read it.
//!
//! A patch is also read by people in terminals and in logs of continuous integration. Nothing in a file, and no name of
//! one, may steer these: where a line would, it is written out, and the patch cannot be applied.

use std::borrow::Cow;

use caulk_core::{git_name, is_command, steers, without_marks, written_out};
use similar::TextDiff;

/// Lines around a change.
const CONTEXT: usize = 3;

/// The patch of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) text: String,
    /// Characters of the file were written out.
    pub(crate) written_out: bool,
}

/// From one text to another.
pub(crate) fn new(name: &str, before: &str, after: &str) -> Patch {
    // A `\r` alone ends no line for those who read patches.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (old, new) = (lines(before), lines(after));
    let diff = TextDiff::configure().newline_terminated(true).diff_slices(&old, &new);
    let hunks = diff.unified_diff().context_radius(CONTEXT).to_string();
    let mut patch = Patch {
        text: format!("{}\n{}\n", header("---", "a", name), header("+++", "b", name)),
        written_out: false,
    };
    for line in hunks.split_inclusive('\n') {
        let shown = harmless(line);
        patch.written_out |= matches!(shown, Cow::Owned(_));
        patch.text.push_str(&shown);
    }
    patch
}

fn header(mark: &str, side: &str, name: &str) -> String {
    // As git has it: a name ends at a tab where blanks in it would leave that open.
    let end = if name.contains(' ') { "\t" } else { "" };
    format!("{mark} {}{end}", git_name(&format!("{side}/{name}")))
}

/// A line with what would steer a terminal or a log written out.
fn harmless(line: &str) -> Cow<'_, str> {
    let text = line.strip_suffix('\n').unwrap_or(line);
    let (text, end) =
        text.strip_suffix('\r').map_or((text, &line[text.len()..]), |text| (text, &line[text.len()..]));
    if !text.contains(|c| steers(c) && !matches!(c, '\t' | '\u{c}')) && !is_command(text) {
        return line.into();
    }
    let text = written_out(text);
    let text = without_marks(&text, "\\x23");
    let (blanks, rest) = text.split_at(text.len() - text.trim_start().len());
    let rest = rest.strip_prefix("::").map_or(rest.into(), |rest| format!("\\x3a:{rest}"));
    format!("{blanks}{rest}{end}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, before: &str, after: &str, text: &str, written_out: bool) {
        assert_eq!(new(name, before, after), Patch { text: text.to_owned(), written_out });
    }

    #[test]
    fn a_patch_is_what_git_writes() {
        check(
            "a.py",
            "a\nx\nb",
            "a\ny\nb",
            "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n a\n-x\n+y\n b\n\\ No newline at end of file\n",
            false,
        );
        check("a b.py", "x\r\n", "y\r\n", "--- a/a b.py\t\n+++ b/a b.py\t\n@@ -1 +1 @@\n-x\r\n+y\r\n", false);
        check(
            "ä\n.py",
            "x\n",
            "y\n",
            "--- \"a/\\303\\244\\n.py\"\n+++ \"b/\\303\\244\\n.py\"\n@@ -1 +1 @@\n-x\n+y\n",
            false,
        );
    }

    #[test]
    fn no_line_steers_a_terminal_or_a_log() {
        let head = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n";
        check("a.py", "a\r+b\nx\n", "a\r+b\ny\n", &format!("{head} a\\r+b\n-x\n+y\n"), true);
        check("a.py", "\x1b[2J\r\nx\n", "\x1b[2J\r\ny\n", &format!("{head} \\x1b[2J\r\n-x\n+y\n"), true);
        check(
            "a.py",
            "  ::error::a\nx\n",
            "  ::error::a\ny\n",
            &format!("{head}   \\x3a:error::a\n-x\n+y\n"),
            true,
        );
        check(
            "a.py",
            "a ##[error]\nx\n",
            "a ##[error]\ny\n",
            &format!("{head} a #\\x23[error]\n-x\n+y\n"),
            true,
        );
    }
}
