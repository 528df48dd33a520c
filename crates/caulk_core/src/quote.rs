//! Names and texts that somebody else chose, on a terminal, in a log, in a patch.
//!
//! A terminal obeys control characters, and a runner of continuous integration obeys lines: `::error::text` at the start
//! of one, `##[error]text`, `##vso[task...]` or `##teamcity[...]` anywhere in it. Neither may come out of a stranger's file.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character steers what shows it: control characters, separators of lines, and marks that reorder text.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether `##[` or `##name[` begins here.
fn begins_mark(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric();
    text.strip_prefix("##").is_some_and(|rest| rest.trim_start_matches(name).starts_with('['))
}

/// The text with another second character in every `##[` and `##name[`, which runners obey.
pub fn without_marks<'a>(text: &'a str, second: &str) -> Cow<'a, str> {
    if !text.contains("##") {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("##") {
        let (before, mark) = rest.split_at(at + 1);
        out.push_str(before);
        if begins_mark(&rest[at..]) {
            out.push_str(second);
            rest = &mark[1..];
        } else {
            rest = mark;
        }
    }
    out.push_str(rest);
    out.into()
}

/// Whether a runner takes a line for a command to itself.
pub fn is_command(line: &str) -> bool {
    line.trim_start().strip_prefix("::").is_some_and(|rest| rest.contains("::"))
        || line.char_indices().any(|(at, _)| begins_mark(&line[at..]))
}

/// A line that no runner takes for a command; `\u{FFFD}` stands for a character that would make it one.
pub fn no_command(line: &str) -> Cow<'_, str> {
    if !is_command(line) {
        return line.into();
    }
    let mut line = without_marks(line, "\u{FFFD}").into_owned();
    let start = line.len() - line.trim_start().len();
    if line[start..].starts_with("::") {
        line.replace_range(start..=start, "\u{FFFD}");
    }
    line.into()
}

/// Text in which characters that steer are written out: `\n`, `\x1b`, `\u{202e}`.
pub fn written_out(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a string cannot fail.
            c if steers(c) && c.is_ascii() => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c if steers(c) => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.into()
}

/// A file's name for people and their editors: as it is, unless it steers a terminal or begins a command. Then it is
/// quoted as C does it.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    if name.contains(steers) || is_command(name) || name.trim_start().starts_with("::") {
        quoted(name, |c| steers(c) || c == '#').into()
    } else {
        name.into()
    }
}

/// A file's name as git writes it in a patch: as it is, or quoted as C does it, where it has quotes, backslashes, control
/// characters or anything beyond ASCII (`core.quotePath`); also where a runner would take it for a command.
pub fn git_name(name: &str) -> Cow<'_, str> {
    let command = is_command(name);
    let octal = |c: char| c.is_control() || !c.is_ascii() || command && c == '#';
    if name.contains(|c| octal(c) || matches!(c, '"' | '\\')) {
        quoted(name, octal).into()
    } else {
        name.into()
    }
}

fn quoted(name: &str, octal: impl Fn(char) -> bool) -> String {
    let mut out = String::from("\"");
    for c in name.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if octal(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_patches_are_those_of_git() {
        let check = |name, expected| assert_eq!(git_name(name), expected);
        check("a/b c.py", "a/b c.py");
        check("a/größe.py", "\"a/gr\\303\\266\\303\\237e.py\"");
        check("a/##[error].py", "\"a/\\043\\043[error].py\"");
        check("a/#.py", "a/#.py");
        check("a\n+++ b\"\\\x1b[m\x7f.py", "\"a\\n+++ b\\\"\\\\\\033[m\\177.py\"");
    }

    #[test]
    fn names_for_people_stay_readable() {
        let check = |name, expected| assert_eq!(shown_name(name), expected);
        check("größe \"x\".py", "größe \"x\".py");
        check("a\n\u{9b}2J.py", "\"a\\n\\302\\2332J.py\"");
        check(" ::error::x.py", "\" ::error::x.py\"");
        check("a##[x]", "\"a\\043\\043[x]\"");
    }

    #[test]
    fn no_line_is_a_command() {
        for line in [
            "::error::x",
            "  ::stop-commands::x",
            "a ##[error]x",
            "::a::##[b]",
            "x = 1  ##vso[task.setvariable variable=a]b",
            "###teamcity[x]##[y]",
        ] {
            assert!(is_command(line) && !is_command(&no_command(line)), "{line}");
        }
        for line in ["::", "x[::2]", "a::b::c", ":: no end", "## a [b]", "x  ## see y[0]"] {
            assert_eq!(no_command(line), line);
        }
    }

    #[test]
    fn what_steers_is_written_out() {
        assert_eq!(written_out("a\x1b[m\r\n\u{202e}ä"), "a\\x1b[m\\r\\n\\u{202e}ä");
    }
}
