//! Options of the commands that write help for shells and for `man`.

use std::sync::LazyLock;

use camino::Utf8PathBuf;
use caulk_record::SCHEMA;
use clap::{Args, ValueHint};
use clap_complete::Shell;

/// Facts of this build, for reports of defects: `caulk --version`.
pub(super) fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = option_env!("CAULK_COMMIT").unwrap_or("not known");
        let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
        let libc = if cfg!(target_env = "musl") { "musl" } else { "glibc" };
        let profile = if cfg!(debug_assertions) { "debug" } else { "optimized" };
        format!(
            "{}\ncommit: {commit}\nbuild: {machine} {system} {libc}, {profile}\nrecordings: schema {SCHEMA}",
            env!("CARGO_PKG_VERSION")
        )
    });
    &TEXT
}

const COMPLETIONS_HELP: &str = "\
Examples:
  caulk completions bash > ~/.local/share/bash-completion/completions/caulk
  caulk completions zsh > ~/.zfunc/_caulk         with `fpath+=~/.zfunc` in .zshrc, before compinit
  caulk completions fish > ~/.config/fish/completions/caulk.fish";

const MAN_HELP: &str = "\
Examples:
  caulk man ~/.local/share/man/man1       then `man caulk`, `man caulk-run`";

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Write the manual pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManArgs {
    /// Folder to write them to; it is made if it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Utf8PathBuf,
}
