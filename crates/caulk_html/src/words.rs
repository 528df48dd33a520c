//! Texts of the program's, made harmless; sizes and times.

use std::borrow::Cow;

use caulk_core::{Bytes, ProcessRef, steers};
use maud::{Markup, html};

/// A text of the program's: nothing in it steers the page's direction or layout. Its end is cut beyond `most` characters.
pub(crate) fn plain(text: &str, most: usize) -> Cow<'_, str> {
    let is_plain = |c: char| !steers(c);
    if text.len() <= most && text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len().min(4 * most));
    for (index, c) in text.chars().enumerate() {
        if index >= most {
            out.push('…');
            break;
        }
        match c {
            '\t' => out.push_str("    "),
            '\n' | '\r' => out.push(' '),
            c => out.push(if is_plain(c) { c } else { '\u{FFFD}' }),
        }
    }
    out.into()
}

/// A sentence with names in backticks, which are set as code.
pub(crate) fn prose(text: &str, most: usize) -> Markup {
    let text = plain(text, most);
    let parts: Vec<&str> = text.split('`').collect();
    // Without its end, what begins a name is a mark like any other.
    let paired = parts.len() % 2 == 1;
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if paired && index % 2 == 1 { code { (part) } } @else {
                @if !paired && index > 0 { "`" }
                (part)
            }
        }
    }
}

/// A size that may be negative.
pub(crate) fn bytes(value: f64) -> String {
    if value < -0.5 { Bytes::signed(value) } else { Bytes(value.max(0.0).round() as u64).to_string() }
}

/// A duration on an axis: `0`, `40 s`, `5 min`, `2 h 30 min`, `3 d 12 h`.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    let pair = |large: u64, large_name: &str, small: u64, small_name: &str| match small {
        0 => format!("{large} {large_name}"),
        _ => format!("{large} {large_name} {small} {small_name}"),
    };
    match whole {
        _ if seconds > 0.0 && seconds < 10.0 && seconds.fract() > 0.0 => format!("{seconds:.1} s"),
        0 => "0".into(),
        1..60 => format!("{whole} s"),
        60..3600 => pair(whole / 60, "min", whole % 60, "s"),
        3600..86400 => pair(whole / 3600, "h", whole % 3600 / 60, "min"),
        _ => pair(whole / 86400, "d", whole % 86400 / 3600, "h"),
    }
}

/// Name of a process.
pub(crate) fn process(process: &ProcessRef) -> String {
    match (process.role.as_str(), process.index) {
        ("main", 0) | ("", _) => "main process".into(),
        ("tree", _) => "all processes".into(),
        ("other", index) => format!("other process {index}"),
        (role, index) => format!("{role} {index}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_do_not_steer_and_are_cut() {
        assert_eq!(plain("a\u{202e}b\x1b[m\tc", 20), "a\u{FFFD}b\u{FFFD}[m    c");
        assert_eq!(plain("ääää", 3), "äää…");
        assert_eq!(plain("äää", 3), "äää");
    }

    #[test]
    fn names_in_backticks_are_code() {
        assert_eq!(prose("`a` <grows>", 40).into_string(), "<code>a</code> &lt;grows&gt;");
        assert_eq!(prose("a`b", 40).into_string(), "a`b");
    }

    #[test]
    fn times_have_at_most_two_units() {
        assert_eq!(
            [0.0, 0.5, 40.0, 300.0, 9000.0, 302_400.0].map(time),
            ["0", "0.5 s", "40 s", "5 min", "2 h 30 min", "3 d 12 h"]
        );
    }
}
