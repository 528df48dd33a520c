//! The wheel: command, agent and Python package, built once and installed as a user would install it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::console::{self, OrHint, failure};
use crate::environment::{Environment, Tools};
use crate::process::Cmd;
use crate::workspace::Workspace;

/// The goal is 9 MB. `heal`, its pages, profiles, metrics and the manual made the command alone 9.0 MB, compressed: until it is
/// smaller again, the limit stands above that.
const WHEEL: Wheel = Wheel { name: "caulk", project: ".", dist: "target/package/dist", most: 10_800_000 };
/// Where `pyproject.toml` looks for wheel data: what lies in `scripts` lands in the environment's `bin`, what lies in
/// `platlib` beside the packages.
const DATA: &str = "target/package/caulk.data";
const SCRIPTS: &str = "target/package/caulk.data/scripts";
const PACKAGE: &str = "target/package/caulk.data/platlib/caulk";
/// What lands in the environment's `share`: manual pages and completions.
const SHARE: &str = "target/package/caulk.data/data/share";
const SAMPLER: &str = "libcaulk_preload.so";
/// What to do if something cannot be built.
pub(crate) const BUILD_HINT: &str = "see the compiler's message above; caulk needs the rustc that `rust-version` \
    in Cargo.toml names, or newer, and a C linker (Debian: `apt-get install gcc libc6-dev`)";

/// How much the compiler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Optimized crate by crate, in half the time: to try and to test.
    Develop,
    /// As it is published: to measure and to ship.
    Release,
}

impl Build {
    /// Cargo's name for it, and for the folder below `target`.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Develop => "develop",
            Self::Release => "release",
        }
    }

    /// How hard the wheel is compressed, from 1 to 9.
    fn compression(self) -> &'static str {
        match self {
            Self::Develop => "1",
            Self::Release => "9",
        }
    }
}

/// A wheel that maturin packs.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Name of the distribution.
    pub(crate) name: &'static str,
    /// Folder of its `pyproject.toml`.
    pub(crate) project: &'static str,
    /// Folder for the wheel alone.
    pub(crate) dist: &'static str,
    /// Bytes that it may have as it is published.
    pub(crate) most: u64,
}

impl Wheel {
    /// Packs it and installs it if it is another one than last time.
    pub(crate) fn install(
        &self,
        workspace: &Workspace,
        tools: &Tools,
        environment: &Environment,
        build: Build,
    ) -> anyhow::Result<()> {
        let Self { name, .. } = self;
        let wheel = self.pack(workspace, tools, environment, build)?;
        let installed = environment.file(&format!("{name}.whl.installed"));
        let bytes = fs::read(&wheel).with_context(|| format!("failed to read `{}`", wheel.display()))?;
        if fs::read(&installed).is_ok_and(|old| old == bytes) && environment.bin(name).exists() {
            return Ok(());
        }
        console::step(format!("installing this tree's {name} into .venv"));
        environment
            .pip(tools)
            .args(["--quiet", "--no-deps", "--force-reinstall"])
            .arg(&wheel)
            .run()
            .or_hint("failed to install the wheel", "remove the folder `.venv` and run this again")?;
        fs::write(&installed, bytes).with_context(|| format!("failed to write `{}`", installed.display()))
    }

    fn pack(
        &self,
        workspace: &Workspace,
        tools: &Tools,
        environment: &Environment,
        build: Build,
    ) -> anyhow::Result<PathBuf> {
        let folder = workspace.path(self.dist);
        // One wheel at a time: a leftover of another version must not be the one installed.
        clear(&folder)?;
        tools
            .command("maturin")
            .args([
                "build",
                "--quiet",
                "--profile",
                build.profile(),
                "--compatibility",
                "linux",
                "--compression-level",
                build.compression(),
                "--interpreter",
            ])
            .arg(environment.bin("python"))
            .arg("--out")
            .arg(&folder)
            .folder(workspace.path(self.project))
            .env("CARGO_TARGET_DIR", workspace.target())
            .run()
            .or_hint("failed to build the wheel", BUILD_HINT)?;
        let wheel = self.packed(workspace)?;
        if build == Build::Release {
            self.check_size(&wheel)?;
        }
        Ok(wheel)
    }

    fn check_size(&self, wheel: &Path) -> anyhow::Result<()> {
        let bytes = fs::metadata(wheel).with_context(|| format!("no `{}`", wheel.display()))?.len();
        if bytes <= self.most {
            return Ok(());
        }
        Err(failure(
            format!("`{}` has {bytes} bytes; it may have {}", wheel.display(), self.most),
            "find what it grew by, or give the reason in xtask/src/package.rs",
        ))
    }

    /// The one that was packed last.
    fn packed(&self, workspace: &Workspace) -> anyhow::Result<PathBuf> {
        let folder = workspace.path(self.dist);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("failed to list `{}`", folder.display()))?;
        let mut wheels =
            entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| is_wheel(path));
        wheels.next().ok_or_else(|| failure(format!("no wheel in `{}`", folder.display()), BUILD_HINT))
    }
}

/// Builds what has changed and installs the wheel if it is another one than last time.
pub(crate) fn install(
    workspace: &Workspace,
    tools: &Tools,
    environment: &Environment,
    build: Build,
) -> anyhow::Result<()> {
    let minutes = if build == Build::Develop { 4 } else { 7 };
    console::step(format!(
        "building the command and the agent ({minutes} minutes on two cores the first time)"
    ));
    place_data(workspace, build)?;
    WHEEL.install(workspace, tools, environment, build)
}

/// Fails if a wheel of caulk is larger than a published one may be.
pub(crate) fn check_size(wheel: &Path) -> anyhow::Result<()> {
    WHEEL.check_size(wheel)
}

/// The wheel that was built last.
pub(crate) fn wheel(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    WHEEL.packed(workspace)
}

/// Builds the command alone and returns where it lies.
pub(crate) fn build_command(workspace: &Workspace, build: Build) -> anyhow::Result<PathBuf> {
    let mut cargo =
        Cmd::cargo().args(["build", "--profile", build.profile(), "--package", "caulk", "--bin", "caulk"]);
    // Tests do not wait for another build after every commit.
    if build == Build::Release {
        let commit =
            Cmd::new("git").args(["describe", "--always", "--dirty"]).folder(workspace.root()).read();
        cargo = commit.iter().fold(cargo, |cargo, commit| cargo.env("CAULK_COMMIT", commit.trim()));
    }
    cargo.folder(workspace.root()).run().or_hint("failed to build the command `caulk`", BUILD_HINT)?;
    Ok(workspace.target().join(build.profile()).join("caulk"))
}

/// Builds what the wheel carries beside the agent, and puts it where `pyproject.toml` looks for it.
pub(crate) fn place_data(workspace: &Workspace, build: Build) -> anyhow::Result<()> {
    clear(&workspace.path(DATA))?;
    let command = build_command(workspace, build)?;
    place(&command, &workspace.path(SCRIPTS), "caulk")?;
    place_help(workspace, &command)?;
    place(&build_sampler(workspace)?, &workspace.path(PACKAGE), SAMPLER)
}

/// Has the command write its manual pages and completions where shells and `man` look for them.
fn place_help(workspace: &Workspace, command: &Path) -> anyhow::Result<()> {
    const COMPLETIONS: [(&str, &str); 3] = [
        ("bash", "bash-completion/completions/caulk"),
        ("zsh", "zsh/site-functions/_caulk"),
        ("fish", "fish/vendor_completions.d/caulk.fish"),
    ];
    let share = workspace.path(SHARE);
    let caulk = || Cmd::new(command).folder(workspace.root());
    caulk()
        .arg("man")
        .arg(share.join("man/man1"))
        .read()
        .or_hint("failed to write the manual pages", BUILD_HINT)?;
    for (shell, file) in COMPLETIONS {
        let text =
            caulk().args(["completions", shell]).read().or_hint("failed to write completions", BUILD_HINT)?;
        let file = share.join(file);
        fs::create_dir_all(file.parent().unwrap_or(&share))
            .and_then(|()| fs::write(&file, text))
            .with_context(|| format!("failed to write `{}`", file.display()))?;
    }
    Ok(())
}

/// Builds the heap sampler. It is loaded into any program, of other C libraries too: it needs nothing but a few of libc's
/// functions. Without unwinding nothing of it can panic, and what the compiler refers to all the same is not there; that
/// holds only where it is optimized as a whole.
fn build_sampler(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    Cmd::cargo()
        .args(["rustc", "--release", "--package", "caulk_preload", "--lib", "--"])
        .args(["-C", "panic=abort", "-C", "link-arg=-Wl,--defsym=rust_eh_personality=0"])
        .folder(workspace.root())
        .run()
        .or_hint("failed to build the heap sampler", BUILD_HINT)?;
    Ok(workspace.target().join(Build::Release.profile()).join(SAMPLER))
}

/// Empties a folder of wheel data: what an earlier version put there must not get into the wheel.
pub(crate) fn clear(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    Ok(())
}

/// Copies a file that was built.
pub(crate) fn place(built: &Path, folder: &Path, name: &str) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let placed = folder.join(name);
    fs::copy(built, &placed)
        .with_context(|| format!("failed to copy `{}` to `{}`", built.display(), placed.display()))?;
    Ok(())
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "whl")
}
