//! What the user sees. Data goes to standard output, everything else to standard error.
//!
//! Nothing here fails or panics: a reader that has gone away must not change how a training ends.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use caulk_core::{no_command, written_out};
use caulk_report::TextOptions;

/// Columns where the width is not known.
const DEFAULT_WIDTH: usize = 100;

/// Widest text that is still easy to read.
const MAX_WIDTH: usize = 110;

/// Writes for the user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    quiet: bool,
    color: bool,
    terminal: bool,
}

/// An error in pieces.
struct Told {
    /// The error and its causes.
    causes: Vec<String>,
    /// What to do.
    hints: Vec<String>,
}

impl Told {
    /// Lines `hint: ...` of the errors' texts are hints.
    fn of(error: &anyhow::Error) -> Self {
        let (mut causes, mut hints) = (Vec::new(), Vec::new());
        for cause in error.chain() {
            let text = harmless(&cause.to_string());
            let hint = |line: &&str| line.trim().starts_with("hint: ");
            let (own, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !hint(line));
            causes.push(own.join("\n"));
            let launch = cause.downcast_ref::<caulk_supervise::LaunchError>();
            let rest = rest.into_iter().chain(launch.and_then(|error| error.hint()));
            hints.extend(rest.map(|hint| hint.trim().trim_start_matches("hint: ").to_owned()));
        }
        Self { causes, hints }
    }
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        let stderr = io::stderr();
        Self { quiet, color: color(&stderr), terminal: stderr.is_terminal() }
    }

    /// Text to standard error, unless the user asked for quiet.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            to_stderr(text);
        }
    }

    /// Something that the user should know although the work goes on.
    pub(crate) fn warn(self, text: &str) {
        self.aside(AnsiColor::Yellow, "warning:", text);
    }

    /// A failure in spite of which the work goes on: what failed and why, what follows, what to do.
    pub(crate) fn warn_of(self, error: &anyhow::Error, consequence: Option<&str>) {
        let Told { causes, hints } = Told::of(error);
        let hints = hints.into_iter().map(|hint| format!("hint: {hint}"));
        let lines = [causes.join(": ")].into_iter().chain(consequence.map(str::to_owned)).chain(hints);
        self.warn(&lines.collect::<Vec<_>>().join("\n"));
    }

    /// Something about the run that may be worth an interruption, unless the user asked for quiet.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            self.aside(AnsiColor::Cyan, "note:", text);
        }
    }

    /// What the guard does: an intervention, which is said even where the user asked for quiet.
    pub(crate) fn guard(self, text: &str) {
        self.aside(AnsiColor::Magenta, "guard:", text);
    }

    /// How far something is that takes its time.
    pub(crate) fn progress(self, text: &str) {
        if !self.quiet {
            self.whole_lines(text);
        }
    }

    /// Is there somebody who watches?
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    fn aside(self, color: AnsiColor, label: &str, text: &str) {
        let label = self.paint(color, label);
        self.whole_lines(&format!("{label} {}", harmless(text).replace('\n', "\n       ")));
    }

    /// Whole lines of caulk's own between those of the program.
    fn whole_lines(self, text: &str) {
        if self.terminal && would_stop() {
            return;
        }
        // A bar may stand in this line: it is cleared, and drawn again below by its program.
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        to_stderr(&format!("{start}caulk: {text}\n"));
    }

    /// Why the command failed: the error, its causes, what to do.
    pub(crate) fn error(self, error: &anyhow::Error) {
        let Told { causes, hints } = Told::of(error);
        let causes = causes.iter().enumerate().map(|(depth, cause)| {
            let label = if depth == 0 { self.paint(AnsiColor::Red, "error:") } else { "  cause:".into() };
            format!("{label} {}\n", cause.replace('\n', "\n  "))
        });
        let label = self.paint(AnsiColor::Cyan, "hint:");
        let hints = hints.iter().map(|hint| format!("{label} {hint}\n"));
        to_stderr(&causes.chain(hints).collect::<String>());
    }

    /// How to write a report to standard error.
    pub(crate) fn options(self) -> TextOptions {
        TextOptions { color: self.color, width: width(&io::stderr()), full: false }
    }

    fn paint(self, color: AnsiColor, text: &str) -> String {
        if self.color {
            let style = Style::new().fg_color(Some(color.into())).bold();
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Text of more than one line in which nothing steers a terminal, or a runner of continuous integration: errors name files,
/// and may quote them.
fn harmless(text: &str) -> String {
    let line = |line: &str| {
        let line = line.split('\t').map(written_out).collect::<Vec<_>>().join("\t");
        no_command(&line).into_owned()
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Writes data to standard output.
///
/// # Errors
/// What the system says, except that a reader who has seen enough is no error.
pub(crate) fn data(content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(content.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Clears the screen, where standard output is one.
///
/// # Errors
/// As [`data`].
pub(crate) fn clear() -> io::Result<()> {
    if io::stdout().is_terminal() { data("\x1b[2J\x1b[H") } else { Ok(()) }
}

/// Writes a page over the one before it on a terminal, as much of it as has room there.
///
/// # Errors
/// As [`data`].
pub(crate) fn redraw(page: &str) -> io::Result<()> {
    let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    let room = if rows == 0 { usize::MAX } else { rows - 1 };
    let shown: Vec<&str> = page.lines().take(room).collect();
    // Line by line, and only then what is left of the old page: it does not flicker.
    data(format!("\x1b[H{}\x1b[K\n\x1b[J", shown.join("\x1b[K\n")))
}

/// How to write a report to standard output.
pub(crate) fn data_options() -> TextOptions {
    TextOptions { color: color(&io::stdout()), width: width(&io::stdout()), full: false }
}

/// How to write a report into a file.
pub(crate) fn file_options() -> TextOptions {
    TextOptions { color: false, width: DEFAULT_WIDTH, full: false }
}

/// Writing to the terminal from the background stops the whole job where the terminal is set so.
fn would_stop() -> bool {
    use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
    let stderr = io::stderr();
    let background = tcgetpgrp(&stderr).is_ok_and(|group| group != rustix::process::getpgrp());
    background && tcgetattr(&stderr).is_ok_and(|terminal| terminal.local_modes.contains(LocalModes::TOSTOP))
}

fn to_stderr(text: &str) {
    // There is nobody to tell that standard error is closed.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn color(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

fn width(stream: &(impl IsTerminal + rustix::fd::AsFd)) -> usize {
    if !stream.is_terminal() {
        return DEFAULT_WIDTH;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { DEFAULT_WIDTH } else { columns.min(MAX_WIDTH) }
}
