//! The ways in which the example program is run.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::process::Cmd;

/// One way of running the program.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    /// As the table shows it.
    pub(crate) name: &'static str,
    /// What it writes, below its folder.
    output: Option<&'static str>,
    line: fn(&Environment, &Path, &Program) -> Cmd,
}

/// A Python program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// What follows `python`.
    pub(crate) words: Vec<String>,
}

/// No profiler: what the others are compared with.
pub(crate) const PLAIN: Contender = Contender { name: "no profiler", output: None, line: plain };

/// caulk as a user would run it.
pub(crate) const CAULK: Contender = Contender { name: "caulk run", output: Some("run"), line: caulk };

/// Everything that is compared, the plain program first.
pub(crate) const ALL: [Contender; 9] = [
    PLAIN,
    CAULK,
    Contender { name: "tracemalloc", output: None, line: tracemalloc },
    Contender { name: "memray run", output: Some("memray.bin"), line: memray },
    Contender { name: "memray run --native", output: Some("memray.bin"), line: memray_native },
    Contender { name: "memray run --aggregate", output: Some("memray.bin"), line: memray_aggregate },
    Contender { name: "fil-profile", output: Some("fil"), line: fil },
    Contender { name: "scalene --cpu-only", output: Some("scalene.json"), line: scalene_cpu },
    Contender { name: "scalene", output: Some("scalene.json"), line: scalene },
];

/// A library inside training: as people write it, without what leaks, and under caulk.
pub(crate) const REACHING: [Contender; 3] = [
    Contender { name: "as written", output: None, line: plain },
    Contender { name: "mended", output: None, line: mended },
    CAULK,
];

impl Contender {
    /// The command line; what it writes goes below `folder`.
    pub(crate) fn command(&self, environment: &Environment, folder: &Path, program: &Program) -> Cmd {
        // One thread: the figures are to tell of the profiler, not of how threads wait for each other.
        (self.line)(environment, folder, program).env("OMP_NUM_THREADS", "1")
    }

    /// What it writes.
    pub(crate) fn output(&self, folder: &Path) -> Option<PathBuf> {
        self.output.map(|name| folder.join(name))
    }
}

fn plain(environment: &Environment, _: &Path, program: &Program) -> Cmd {
    Cmd::new(environment.bin("python")).args(&program.words)
}

fn mended(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    plain(environment, folder, program).args(["--mended"])
}

fn caulk(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    let run = Cmd::new(environment.bin("caulk")).args(["run", "--output"]).arg(folder.join("run"));
    run.arg("--").arg(environment.bin("python")).args(&program.words)
}

fn tracemalloc(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    plain(environment, folder, program).env("PYTHONTRACEMALLOC", "1")
}

fn memray(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    memray_with(environment, folder, program, &["--follow-fork"])
}

fn memray_native(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    memray_with(environment, folder, program, &["--follow-fork", "--native"])
}

/// It refuses to follow workers then.
fn memray_aggregate(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    memray_with(environment, folder, program, &["--aggregate"])
}

fn memray_with(environment: &Environment, folder: &Path, program: &Program, options: &[&str]) -> Cmd {
    let run = Cmd::new(environment.bin("python")).args(["-m", "memray", "run", "--quiet", "--force"]);
    run.args(options.iter().copied()).arg("--output").arg(folder.join("memray.bin")).args(&program.words)
}

/// It takes a script alone.
fn fil(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    let run = Cmd::new(environment.bin("python")).args(["-m", "filprofiler", "--no-browser", "-o"]);
    run.arg(folder.join("fil")).arg("run").args(&program.words)
}

fn scalene(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    scalene_with(environment, folder, program, &[])
}

fn scalene_cpu(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    scalene_with(environment, folder, program, &["--cpu-only"])
}

fn scalene_with(environment: &Environment, folder: &Path, program: &Program, options: &[&str]) -> Cmd {
    let run =
        Cmd::new(environment.bin("python")).args(["-m", "scalene", "run"]).args(options.iter().copied());
    let run = run.arg("--outfile").arg(folder.join("scalene.json"));
    // Its own arguments end before `---`.
    let (script, arguments) = program.words.split_at(1);
    run.args(script).arg("---").args(arguments)
}
