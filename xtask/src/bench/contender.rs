//! The ways in which the example program is run.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::process::Cmd;

/// One way of running the program.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    /// As the table shows it.
    pub(crate) name: &'static str,
    /// Whose it is.
    pub(crate) maker: Maker,
    /// What it writes, below its folder.
    output: Option<&'static str>,
    line: Line,
}

/// Whose a contender is: where a rival fails, it is no reason to lose what the others did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// The program itself, or caulk.
    Ours,
    /// Somebody else's memory profiler, with whose overhead caulk's is compared.
    Rival,
    /// Somebody else's, who does not look at memory.
    Onlooker,
}

/// A Python program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// What follows `python`.
    pub(crate) words: Vec<String>,
    /// malloc gives no page of its heap back before the end, and maps large blocks singly throughout. Whether it gives some
    /// back hangs else on what lies at the heap's end, and from which size on it maps on what was freed before: peaks of the same
    /// program differ by 20 MB.
    pub(crate) keeps_pages: bool,
}

/// Thresholds of glibc's malloc (mallopt(3)) for [`Program::keeps_pages`]: the second is what it begins with, and stays.
const KEEP_PAGES: [(&str, &str); 2] =
    [("MALLOC_TRIM_THRESHOLD_", "1000000000"), ("MALLOC_MMAP_THRESHOLD_", "131072")];

/// No profiler: what the others are compared with.
pub(crate) const PLAIN: Contender = ours("no profiler", None, plain);

/// caulk as a user would run it.
pub(crate) const CAULK: Contender = ours("caulk run", Some("run"), caulk);

/// Everything that is compared, the plain program first.
pub(crate) const ALL: [Contender; 11] = [
    PLAIN,
    CAULK,
    rival("tracemalloc, 1 frame", None, tracemalloc),
    rival("tracemalloc, 25 frames", None, tracemalloc_deep),
    rival("memray run", Some("memray.bin"), memray),
    rival("memray run --native", Some("memray.bin"), memray_native),
    rival("memray run --aggregate", Some("memray.bin"), memray_aggregate),
    rival("fil-profile", Some("fil"), fil),
    rival("memory_profiler", Some("lines.txt"), memory_profiler),
    Contender { maker: Maker::Onlooker, ..rival("scalene --cpu-only", Some("scalene.json"), scalene_cpu) },
    rival("scalene", Some("scalene.json"), scalene),
];

/// A library inside training: as people write it, without what leaks, and under caulk.
pub(crate) const REACHING: [Contender; 3] =
    [ours("as written", None, plain), ours("mended", None, mended), CAULK];

/// The command line of a contender.
type Line = fn(&Environment, &Path, &Program) -> Cmd;

const fn ours(name: &'static str, output: Option<&'static str>, line: Line) -> Contender {
    Contender { name, maker: Maker::Ours, output, line }
}

const fn rival(name: &'static str, output: Option<&'static str>, line: Line) -> Contender {
    Contender { name, maker: Maker::Rival, output, line }
}

impl Contender {
    /// The command line; what it writes goes below `folder`.
    pub(crate) fn command(&self, environment: &Environment, folder: &Path, program: &Program) -> Cmd {
        // One thread: the figures are to tell of the profiler, not of how threads wait for each other.
        let command = (self.line)(environment, folder, program).env("OMP_NUM_THREADS", "1");
        let kept = if program.keeps_pages { &KEEP_PAGES[..] } else { &[] };
        kept.iter().fold(command, |command, (name, bytes)| command.env(name, bytes))
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

fn tracemalloc_deep(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    plain(environment, folder, program).env("PYTHONTRACEMALLOC", "25")
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

fn memory_profiler(environment: &Environment, folder: &Path, program: &Program) -> Cmd {
    let run = Cmd::new(environment.bin("python")).args(["xtask/src/bench/by_line.py"]);
    run.arg(folder.join("lines.txt")).args(&program.words)
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
