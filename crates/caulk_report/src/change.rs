//! A fix's edits as lines to take out and lines to put in.

use std::collections::BTreeMap;

use caulk_core::{Edit, Position};

use crate::Excerpts;

/// Lines of one file that change together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) file: String,
    /// Number of the first line taken out, or before which lines are put in.
    pub(crate) line: u32,
    pub(crate) removed: Vec<String>,
    pub(crate) added: Vec<String>,
}

/// The edits as hunks, in the order of files and lines. Edits whose lines are not at hand, or that do not fit their
/// lines (the file was changed since), are left out.
pub(crate) fn hunks(edits: &[Edit], excerpts: &Excerpts) -> Vec<Hunk> {
    let mut files: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        files.entry(&edit.file).or_default().push(edit);
    }
    let mut hunks = Vec::new();
    for (file, mut edits) in files {
        edits.sort_by_key(|edit| (edit.start, edit.end));
        let mut rest = edits.as_slice();
        while let Some((first, others)) = rest.split_first() {
            // Edits that touch the same line are one hunk.
            let mut last_line = first.end.line;
            let mut together = 1;
            for edit in others.iter().take_while(|edit| edit.start.line <= last_line).collect::<Vec<_>>() {
                last_line = last_line.max(edit.end.line);
                together += 1;
            }
            let (group, after) = rest.split_at(together);
            hunks.extend(hunk(file, first.start.line, last_line, group, excerpts));
            rest = after;
        }
    }
    hunks
}

fn hunk(file: &str, first: u32, last: u32, edits: &[&Edit], excerpts: &Excerpts) -> Option<Hunk> {
    let mut old: Vec<String> = Vec::new();
    for line in first..=last {
        match excerpts.line(file, line) {
            Some(text) => old.push(text.to_owned()),
            // An edit may end at the start of the line after the file's last.
            None if line == last && line > first => old.push(String::new()),
            None => return None,
        }
    }
    let text: Vec<char> = old.join("\n").chars().collect();
    let offset = |position: Position| {
        let line = usize::try_from(position.line.checked_sub(first)?).ok()?;
        let before: usize = old.get(..line)?.iter().map(|text| text.chars().count() + 1).sum();
        let column = usize::try_from(position.column.checked_sub(1)?).ok()?;
        (column <= old.get(line)?.chars().count()).then_some(before + column)
    };
    let mut new = String::new();
    let mut done = 0;
    for edit in edits {
        let (start, end) = (offset(edit.start)?, offset(edit.end)?);
        if start < done || end < start {
            return None;
        }
        new.extend(&text[done..start]);
        new.push_str(&edit.content);
        done = end;
    }
    new.extend(&text[done..]);
    let new: Vec<String> = new.split('\n').map(str::to_owned).collect();
    Some(trimmed(file, first, old, new)).filter(|hunk| !(hunk.removed.is_empty() && hunk.added.is_empty()))
}

/// Drops lines that are the same at both ends.
fn trimmed(file: &str, first: u32, mut old: Vec<String>, mut new: Vec<String>) -> Hunk {
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    old.drain(..head);
    new.drain(..head);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    old.truncate(old.len() - tail);
    new.truncate(new.len() - tail);
    Hunk { file: file.to_owned(), line: first + head as u32, removed: old, added: new }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: (u32, u32), end: (u32, u32), content: &str) -> Edit {
        let position = |(line, column)| Position { line, column };
        Edit { file: "a.py".into(), start: position(start), end: position(end), content: content.into() }
    }

    fn check(source: &str, edits: &[Edit], expected: &[(u32, &[&str], &[&str])]) {
        let mut excerpts = Excerpts::default();
        for (number, line) in (1..).zip(source.lines()) {
            excerpts.insert("a.py", number, line);
        }
        let hunks = hunks(edits, &excerpts);
        let found: Vec<(u32, Vec<String>, Vec<String>)> =
            hunks.iter().map(|hunk| (hunk.line, hunk.removed.clone(), hunk.added.clone())).collect();
        let texts = |lines: &[&str]| lines.iter().map(ToString::to_string).collect();
        let expected: Vec<_> =
            expected.iter().map(|(line, removed, added)| (*line, texts(removed), texts(added))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_call_is_added_inside_a_line() {
        check(
            "x = 1\nkept.append(löss)\n",
            &[edit((2, 17), (2, 17), ".detach()")],
            &[(2, &["kept.append(löss)"], &["kept.append(löss.detach())"])],
        );
    }

    #[test]
    fn two_edits_of_one_line_are_one_hunk() {
        let edits = [edit((1, 4), (1, 5), "d"), edit((1, 1), (1, 2), "c")];
        check("a, b\n", &edits, &[(1, &["a, b"], &["c, d"])]);
    }

    #[test]
    fn a_new_line_takes_nothing_out() {
        check("a()\nb()\n", &[edit((2, 1), (2, 1), "c()\n")], &[(2, &[], &["c()"])]);
    }

    #[test]
    fn lines_that_go_leave_nothing_behind() {
        check("a()\nb()\nc()\n", &[edit((2, 1), (3, 1), "")], &[(2, &["b()"], &[])]);
        check("a()\nb()\n", &[edit((2, 1), (3, 1), "")], &[(2, &["b()"], &[])]);
    }

    #[test]
    fn an_edit_that_does_not_fit_is_left_out() {
        check("a\n", &[edit((1, 9), (1, 10), "x")], &[]);
        check("a\n", &[edit((7, 1), (7, 2), "x")], &[]);
        check("abc\n", &[edit((1, 1), (1, 3), "x"), edit((1, 2), (1, 3), "y")], &[]);
    }
}
