//! What the user sees. Data goes to standard output, everything else to standard error.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

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

/// Says what was done.
pub(crate) fn say(text: &str) {
    // If standard error is closed, nothing can report it.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Says what the user should know although the work goes on.
pub(crate) fn warn(text: &str) {
    say(&format!("caulk: {} {}\n", paint(AnsiColor::Yellow, "warning:"), indented(text)));
}

/// Says what may be worth knowing.
pub(crate) fn note(text: &str) {
    say(&format!("caulk: {} {}\n", paint(AnsiColor::Cyan, "note:"), indented(text)));
}

/// Says why the command failed: the error, its causes, and what to do, which are their lines `hint: ...`.
pub(crate) fn error(error: &anyhow::Error) {
    let mut hints = Vec::new();
    for (depth, cause) in error.chain().enumerate() {
        let text = cause.to_string();
        let (own, more): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !line.starts_with("hint: "));
        hints.extend(more.iter().map(|line| line.trim_start_matches("hint: ").to_owned()));
        let label = if depth == 0 { paint(AnsiColor::Red, "error:") } else { "  cause:".into() };
        say(&format!("{label} {}\n", own.join("\n  ")));
    }
    for hint in hints {
        say(&format!("{} {hint}\n", paint(AnsiColor::Cyan, "hint:")));
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n       ")
}

fn paint(color: AnsiColor, text: &str) -> String {
    let style = Style::new().fg_color(Some(color.into())).bold();
    format!("{style}{text}{style:#}")
}
