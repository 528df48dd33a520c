//! What the user sees. Data goes to standard output, everything else to standard error.
//!
//! Nothing here fails or panics: a reader that has gone away must not change how a training ends.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
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
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, color: color(&io::stderr()) }
    }

    /// Text to standard error, unless the user asked for quiet.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            to_stderr(text);
        }
    }

    /// Something that the user should know although the work goes on.
    pub(crate) fn warn(self, text: &str) {
        let label = self.paint(AnsiColor::Yellow, "warning:");
        to_stderr(&format!("caulk: {label} {}\n", text.replace('\n', "\n       ")));
    }

    /// Why the command failed: the error, its causes, what to do.
    pub(crate) fn error(self, error: &anyhow::Error) {
        let mut lines = Vec::new();
        let mut hints = Vec::new();
        for (depth, cause) in error.chain().enumerate() {
            let label = if depth == 0 { self.paint(AnsiColor::Red, "error:") } else { "  cause:".into() };
            for (index, line) in cause.to_string().lines().enumerate() {
                match line.trim().strip_prefix("hint: ") {
                    Some(hint) => hints.push(hint.to_owned()),
                    None if index == 0 => lines.push(format!("{label} {line}")),
                    None => lines.push(format!("  {line}")),
                }
            }
            let launch = cause.downcast_ref::<caulk_supervise::LaunchError>();
            let hint = launch.and_then(|error| error.hint());
            hints.extend(hint.map(|hint| hint.trim_start_matches("hint: ").to_owned()));
        }
        lines
            .extend(hints.into_iter().map(|hint| format!("{} {hint}", self.paint(AnsiColor::Cyan, "hint:"))));
        to_stderr(&(lines.join("\n") + "\n"));
    }

    /// How to write a report to standard error.
    pub(crate) fn options(self) -> TextOptions {
        TextOptions { color: self.color, width: width(&io::stderr()) }
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

/// Writes data to standard output.
///
/// # Errors
/// What the system says, except that a reader who has seen enough is no error.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// How to write a report to standard output.
pub(crate) fn data_options() -> TextOptions {
    TextOptions { color: color(&io::stdout()), width: width(&io::stdout()) }
}

/// How to write a report into a file.
pub(crate) fn file_options() -> TextOptions {
    TextOptions { color: false, width: DEFAULT_WIDTH }
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
