//! Output of xtask: progress and errors to stderr, tables to stdout.

use std::error::Error;
use std::fmt::Display;

use anstyle::{AnsiColor, Style};

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

/// Announces a piece of work.
pub(crate) fn step(text: impl Display) {
    anstream::eprintln!("{STRONG}==> {text}{STRONG:#}");
}

/// Prints a note about the work at hand.
pub(crate) fn note(text: impl Display) {
    anstream::eprintln!("    {text}");
}

/// Shows a command line before it runs.
pub(crate) fn echo(line: impl Display) {
    anstream::eprintln!("{FAINT}    $ {line}{FAINT:#}");
}

/// Writes a line of results.
pub(crate) fn data(text: impl Display) {
    anstream::println!("{text}");
}

/// An error that knows its remedy.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    message: String,
    hint: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// An error with a message and a remedy, for people.
pub(crate) fn failure(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Failure { message: message.into(), hint: hint.into(), source: None }.into()
}

/// Adds a message and a remedy to what went wrong.
pub(crate) trait OrHint<T> {
    /// The error becomes the cause of one with this message and remedy.
    fn or_hint(self, message: impl Into<String>, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> OrHint<T> for Result<T, E> {
    fn or_hint(self, message: impl Into<String>, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|cause| {
            Failure { message: message.into(), hint: hint.into(), source: Some(cause.into()) }.into()
        })
    }
}

/// Prints an error, its causes and the remedies that are known.
pub(crate) fn print_error(error: &anyhow::Error) {
    anstream::eprintln!("{BAD}error{BAD:#}: {error}");
    for cause in error.chain().skip(1) {
        anstream::eprintln!("  caused by: {cause}");
    }
    for hint in hints(error) {
        anstream::eprintln!("{HELP}hint{HELP:#}: {hint}");
    }
}

/// Remedies that an error and its causes know.
pub(crate) fn hints(error: &anyhow::Error) -> impl Iterator<Item = &str> {
    error.chain().filter_map(|cause| cause.downcast_ref::<Failure>()).map(|failure| failure.hint.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_survives_added_context() {
        let error = failure("no python3", "install it").context("failed to make `.venv`");
        assert_eq!(hints(&error).collect::<Vec<_>>(), ["install it"]);
    }

    #[test]
    fn a_cause_stays_in_the_chain() {
        let result: anyhow::Result<()> =
            Err(std::io::Error::other("disk full")).or_hint("failed", "make room");
        let causes: Vec<_> =
            result.map_or_else(|error| error.chain().map(ToString::to_string).collect(), |()| vec![]);
        assert_eq!(causes, ["failed", "disk full"]);
    }
}
