//! A page of text: width, colour, wrapping. Whatever comes from the program is made harmless for a terminal here.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use caulk_core::{is_command, no_command, steers};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text means; colours follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Bad,
    Warn,
    Good,
    Quiet,
    Added,
    Removed,
}

impl Tone {
    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Bad => color(AnsiColor::Red).bold(),
            Self::Warn => color(AnsiColor::Yellow).bold(),
            Self::Good => color(AnsiColor::Green).bold(),
            Self::Quiet => Style::new().dimmed(),
            Self::Added => color(AnsiColor::Green),
            Self::Removed => color(AnsiColor::Red),
        }
    }
}

/// Text under construction.
#[derive(Debug)]
pub(crate) struct Page {
    out: String,
    color: bool,
    width: usize,
}

impl Page {
    pub(crate) fn new(color: bool, width: usize) -> Self {
        Self { out: String::new(), color, width: width.clamp(40, 160) }
    }

    /// The text; no line of it is a command to a runner of continuous integration.
    pub(crate) fn finish(self) -> String {
        if !self.out.lines().any(is_command) {
            return self.out;
        }
        self.out.split_inclusive('\n').map(no_command).collect()
    }

    /// An empty page of the same width and colour, for a part whose length is to be known before it is added.
    pub(crate) fn part(&self) -> Self {
        Self { out: String::new(), color: self.color, width: self.width }
    }

    /// Lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.out.lines().count()
    }

    /// Adds at most `most` lines of a part; whether that was all of it.
    pub(crate) fn add(&mut self, part: &Self, most: usize) -> bool {
        self.out.extend(part.out.split_inclusive('\n').take(most));
        part.lines() <= most
    }

    /// An empty line, never two in a row and none at the top.
    pub(crate) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A rule across the page with a title in it.
    pub(crate) fn rule(&mut self, title: &str) {
        let rest = self.width.saturating_sub(title.width() + 4);
        self.line(&[
            (Tone::Quiet, "── "),
            (Tone::Strong, title),
            (Tone::Quiet, " "),
            (Tone::Quiet, &"─".repeat(rest)),
        ]);
    }

    /// One line of pieces, not wrapped; cut at the page's edge.
    pub(crate) fn line(&mut self, pieces: &[(Tone, &str)]) {
        let mut left = self.width;
        for (tone, text) in pieces {
            let text = cut(&harmless(text), left);
            left -= text.width();
            self.piece(*tone, &text);
        }
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        self.out.push('\n');
    }

    /// Prose in one tone, wrapped; its first line starts with `first`, further ones are indented alike.
    pub(crate) fn prose(&mut self, first: (Tone, &str), tone: Tone, text: &str) {
        let indent = first.1.width();
        let lines = wrap(&harmless(text), self.width.saturating_sub(indent).max(20));
        for (index, line) in lines.iter().enumerate() {
            match index {
                0 => self.piece(first.0, first.1),
                _ => self.out.push_str(&" ".repeat(indent)),
            }
            self.piece(tone, line);
            self.out.push('\n');
        }
    }

    /// As [`Self::prose`], broken only at `separator`.
    pub(crate) fn chain(&mut self, first: &str, tone: Tone, links: &[String], separator: &str) {
        let indent = first.width();
        let room = self.width.saturating_sub(indent).max(20);
        let mut line = String::new();
        let mut prefix = first.to_owned();
        for (index, link) in links.iter().enumerate() {
            let link = harmless(link);
            let link = if index == 0 { link } else { format!("{separator}{link}") };
            if !line.is_empty() && line.width() + link.width() > room {
                self.prose((Tone::Quiet, &prefix), tone, &line);
                (line, prefix) = (String::new(), " ".repeat(indent));
                line.push_str(link.trim_start());
            } else {
                line.push_str(&link);
            }
        }
        self.prose((Tone::Quiet, &prefix), tone, &line);
    }

    /// Columns that are left of a line that starts with `used` columns.
    pub(crate) fn room(&self, used: usize) -> usize {
        self.width.saturating_sub(used)
    }

    fn piece(&mut self, tone: Tone, text: &str) {
        if self.color && tone != Tone::Plain && !text.trim().is_empty() {
            let style = tone.style();
            // Writing to a string cannot fail.
            let _ = write!(self.out, "{style}{text}{style:#}");
        } else {
            self.out.push_str(text);
        }
    }
}

/// Text without control characters: nothing that a program is called or says may steer the reader's terminal.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\n' | '\r' => out.push(' '),
            // Marks that reorder text can make code read as what it is not.
            c if steers(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// At most `room` columns of a text; what is cut is marked.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if used + width + 1 > room {
            break;
        }
        used += width;
        out.push(c);
    }
    if room > 0 {
        out.push('…');
    }
    out
}

/// Lines of at most `room` columns, broken at spaces; a longer word stays whole on a line of its own.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_by_columns_not_bytes() {
        assert_eq!(wrap("ää ää ää", 5), ["ää ää", "ää"]);
        assert_eq!(wrap("漢字 漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("a-very-long-word b", 5), ["a-very-long-word", "b"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn a_cut_is_marked_and_fits() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("漢字漢", 4), "漢…");
        assert_eq!(cut("a", 0), "");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\x1b[31mb\tc\u{202e}"), "a\u{FFFD}[31mb    c\u{FFFD}");
    }

    #[test]
    fn a_chain_breaks_between_its_links() {
        let mut page = Page::new(false, 44);
        page.chain(
            "held by  ",
            Tone::Plain,
            &["module __main__".into(), "function main() local trainer".into()],
            " -> ",
        );
        assert_eq!(page.finish(), "held by  module __main__\n         -> function main() local trainer\n");
    }

    #[test]
    fn colour_is_only_added() {
        let write = |color| {
            let mut page = Page::new(color, 60);
            page.rule("caulk");
            page.prose((Tone::Bad, "error: "), Tone::Strong, "it grows");
            page.finish()
        };
        let (plain, mut colored) = (write(false), write(true));
        assert_ne!(plain, colored);
        while let Some(start) = colored.find('\x1b') {
            let end = start + colored[start..].find('m').expect("a sequence ends");
            colored.replace_range(start..=end, "");
        }
        assert_eq!(plain, colored);
    }
}
