//! `cargo xtask metamorph`: programs in other words, and whether `caulk check` reports the same of them.
//!
//! The Python package `python/metamorph` transforms, checks and compares.

use std::path::PathBuf;

use crate::commands::develop::{self, Interpreter};
use crate::console::{self, OrHint};
use crate::environment::Packages;
use crate::package::Build;
use crate::process::Cmd;
use crate::workspace::Workspace;

/// Rewrite programs without changing what they do, and compare what caulk reports
#[derive(Debug, clap::Args)]
pub(crate) struct MetamorphArgs {
    /// Folder of scenarios that are transformed, too [default: ../shared/leakzoo]
    path: Option<PathBuf>,
    /// Check the variants; this is the default
    #[arg(long = "static", conflicts_with = "run")]
    source: bool,
    /// Run scenarios and their variants instead: their memory must grow, or not, as before
    #[arg(long)]
    run: bool,
    /// Which pairs and triples of transformations are drawn
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Only these transformations, each alone
    #[arg(long, value_name = "TRANSFORMATION", num_args = 1..)]
    only: Vec<String>,
    /// Only programs whose name contains this
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Share of the variants, as a seeded sample
    #[arg(long, default_value_t = 1.0, value_name = "SHARE")]
    share: f64,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &MetamorphArgs) -> anyhow::Result<()> {
    let groups: &[_] = if args.run { &[Packages::Dev, Packages::Full] } else { &[Packages::Dev] };
    let environment = develop::prepare(workspace, &Interpreter::default(), groups, Build::Develop)?;
    console::step("transforming programs");
    let zoo = args.path.clone().unwrap_or_else(|| workspace.path("../shared/leakzoo"));
    let command = Cmd::new(environment.bin("python"))
        .args(["-m", "metamorph", "--caulk"])
        .arg(environment.bin("caulk"))
        .arg("--zoo")
        .arg(zoo)
        .args(["--seed", &args.seed.to_string(), "--share", &args.share.to_string()])
        .args(words(args))
        .env("PYTHONPATH", workspace.path("python"))
        .folder(workspace.root());
    command.run().or_hint(
        "variants are judged otherwise than their programs",
        "`target/metamorph/PROGRAM/TRANSFORMATION` holds each, and `why.txt` what was lost or reported",
    )
}

/// Words that only some calls have.
fn words(args: &MetamorphArgs) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if args.run {
        words.push("--run".into());
    }
    if !args.only.is_empty() {
        words.push("--only".into());
        words.extend(args.only.iter().cloned());
    }
    let program = args.program.iter().flat_map(|name| ["--program".to_owned(), name.clone()]);
    let json = args.json.iter().flat_map(|file| ["--json".to_owned(), file.display().to_string()]);
    words.extend(program.chain(json));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_handed_on() {
        let args = MetamorphArgs {
            path: None,
            source: false,
            run: true,
            seed: 1,
            only: vec!["a".into(), "b".into()],
            program: Some("zoo/".into()),
            share: 0.5,
            json: None,
        };
        assert_eq!(words(&args), ["--run", "--only", "a", "b", "--program", "zoo/"]);
    }
}
