//! Commands that xtask runs: shown before they run, and named when they fail.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use anyhow::Context;

use crate::console;

/// A command line with its folder and the variables it gets on top of ours.
#[derive(Debug, Clone)]
pub(crate) struct Cmd {
    words: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
}

/// A command did not do what it was run for.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` ended with {status}{output}")]
pub(crate) struct CommandFailed {
    command: String,
    status: ExitStatus,
    output: String,
}

impl Cmd {
    /// Starts a command line.
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self { words: vec![program.into()], variables: Vec::new(), folder: None }
    }

    /// Cargo, as a person would call it; rustup keeps to the toolchain that runs xtask.
    pub(crate) fn cargo() -> Self {
        Self::new("cargo")
    }

    /// Adds one word.
    pub(crate) fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Adds words.
    pub(crate) fn args<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs in a folder.
    pub(crate) fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_path_buf());
        self
    }

    /// As the standard library's builder, for callers that redirect or measure.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    /// Shows the command, runs it with our own streams and returns how it ended.
    pub(crate) fn status(&self) -> anyhow::Result<ExitStatus> {
        console::echo(self);
        self.command().status().with_context(|| format!("failed to start `{self}`"))
    }

    /// Shows the command, runs it with our own streams and wants it to succeed.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let status = self.status()?;
        if status.success() { Ok(()) } else { Err(self.failed(status, &[]).into()) }
    }

    /// Runs the command quietly and returns what it wrote to stdout.
    pub(crate) fn read(&self) -> anyhow::Result<String> {
        let Output { status, stdout, stderr } =
            self.command().output().with_context(|| format!("failed to start `{self}`"))?;
        if status.success() {
            Ok(String::from_utf8_lossy(&stdout).into_owned())
        } else {
            Err(self.failed(status, &stderr).into())
        }
    }

    /// Whether the command can be started and succeeds; prints nothing.
    pub(crate) fn works(&self) -> bool {
        self.read().is_ok()
    }

    fn failed(&self, status: ExitStatus, stderr: &[u8]) -> CommandFailed {
        let text = String::from_utf8_lossy(stderr);
        let output = if text.trim().is_empty() { String::new() } else { format!(":\n{}", text.trim()) };
        CommandFailed { command: self.to_string(), status, output }
    }
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = std::env::current_dir()
            .ok()
            .filter(|here| self.folder.as_ref().is_none_or(|folder| folder == here));
        let shown = |word: &OsStr| quoted(below(word, here.as_deref()));
        for (name, value) in &self.variables {
            write!(f, "{}={} ", name.to_string_lossy(), shown(value))?;
        }
        let words: Vec<_> = self.words.iter().map(|word| shown(word)).collect();
        write!(f, "{}", words.join(" "))
    }
}

/// Paths below the caller's folder, as a person there would type them.
fn below<'a>(word: &'a OsStr, here: Option<&Path>) -> &'a OsStr {
    let relative = here.and_then(|here| Path::new(word).strip_prefix(here).ok());
    relative.map(Path::as_os_str).filter(|rest| !rest.is_empty()).unwrap_or(word)
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    shlex::try_quote(&word).map_or_else(|_| word.to_string(), |quoted| quoted.to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_command_is_shown_as_a_shell_would_take_it() {
        let command = Cmd::new("python").args(["-c", "print('a b')"]).env("OMP_NUM_THREADS", "1");
        assert_eq!(command.to_string(), r#"OMP_NUM_THREADS=1 python -c "print('a b')""#);
    }

    #[test]
    fn paths_below_the_folder_are_shown_short() {
        let here = std::env::current_dir().unwrap();
        let command = Cmd::new(here.join(".venv/bin/python")).arg("/else/where.py").arg(&here);
        assert_eq!(command.to_string(), format!(".venv/bin/python /else/where.py {}", here.display()));
    }

    #[test]
    fn a_failure_names_command_status_and_output() {
        let error = Cmd::new("sh").args(["-c", "echo oh >&2; exit 3"]).read().unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'echo oh >&2; exit 3'` ended with exit status: 3:\noh");
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_it() {
        let error = Cmd::new("/no/such/program").run().unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
