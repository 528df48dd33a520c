//! The virtual environments: xtask's own tools, and `.venv` with torch and this tree's caulk.
//!
//! Each requirement file is stamped with its text when it has been installed, so a second run installs nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::console::{self, OrHint};
use crate::process::Cmd;
use crate::python::{self, Python};
use crate::workspace::Workspace;

const TOOLS: &str = ".cache/tools";
const CHECKERS: &str = ".cache/checkers";
const LINTERS: &str = ".cache/linters";
const DOCS: &str = ".cache/docs";
const DIST: &str = ".cache/dist";
const VENV: &str = ".venv";
const CONSTRAINTS: &str = "python/constraints.txt";
const INSTALL_HINT: &str = "see the message of the installer above; it needs the Python package index and room on the \
    disk (`df -h .`). Run the same command again when that is mended: what has been downloaded is kept";

/// A group of packages in `.venv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packages {
    /// Torch, numpy, matplotlib, pytest.
    Dev,
    /// Packages that make and decode the videos of the tests of clips.
    Clips,
    /// Frameworks and tables.
    Full,
    /// What the trainings of `examples/real` need besides.
    Real,
    /// Other profilers.
    Bench,
    /// Other readers of videos.
    Readers,
}

impl Packages {
    fn file(self) -> &'static str {
        match self {
            Self::Dev => "python/requirements-dev.txt",
            Self::Full => "python/requirements-full.txt",
            Self::Real => "python/requirements-real.txt",
            Self::Bench => "python/requirements-bench.txt",
            Self::Clips => "caulk-clips/requirements-dev.txt",
            Self::Readers => "caulk-clips/requirements-readers.txt",
        }
    }

    fn announcement(self) -> &'static str {
        match self {
            Self::Dev => {
                "installing torch, numpy, matplotlib and pytest: torch for Linux is the CUDA build, 3 GB to download \
                 the first time, 5 GB on disk; later environments link to uv's cache and take seconds"
            }
            Self::Clips => "installing PyAV (30 MB)",
            Self::Full => "installing lightning, transformers, accelerate, polars, pandas and ray (500 MB)",
            Self::Real => {
                "installing timm, torchvision, PyTorch Geometric, scikit-learn and gymnasium (150 MB)"
            }
            Self::Bench => "installing memray, Fil, memory_profiler and scalene",
            Self::Readers => "installing decord, OpenCV and torchcodec (90 MB)",
        }
    }
}

/// Programs in a separate environment: uv and maturin, or linters.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Installs the pinned tools that build and install, unless they are there.
    pub(crate) fn prepare(workspace: &Workspace, python: Option<&Path>) -> anyhow::Result<Self> {
        let what = "installing uv and maturin into .cache/tools (40 MB)";
        Self::install(workspace.path(TOOLS), workspace.path("python/requirements-tools.txt"), python, what)
    }

    /// Installs the pinned linters of this workspace's Python, unless they are there.
    pub(crate) fn checkers(workspace: &Workspace) -> anyhow::Result<Self> {
        let what = "installing ruff, mypy, typos and zizmor into .cache/checkers (100 MB)";
        Self::install(
            workspace.path(CHECKERS),
            workspace.path("python/requirements-checkers.txt"),
            None,
            what,
        )
    }

    /// Installs the linters that are compared with, unless they are there.
    pub(crate) fn linters(workspace: &Workspace) -> anyhow::Result<Self> {
        let what = "installing pylint and TorchFix into .cache/linters (60 MB)";
        Self::install(workspace.path(LINTERS), workspace.path("python/requirements-linters.txt"), None, what)
    }

    /// Installs what builds the documentation site, unless it is there.
    pub(crate) fn docs(workspace: &Workspace) -> anyhow::Result<Self> {
        let what = "installing MkDocs with its theme into .cache/docs (60 MB)";
        Self::install(workspace.path(DOCS), workspace.path("python/requirements-docs.txt"), None, what)
    }

    /// Installs what builds and audits a release, unless it is there.
    pub(crate) fn dist(workspace: &Workspace) -> anyhow::Result<Self> {
        let what = "installing maturin and auditwheel into .cache/dist (40 MB)";
        Self::install(workspace.path(DIST), workspace.path("python/requirements-dist.txt"), None, what)
    }

    fn install(
        folder: PathBuf,
        requirements: PathBuf,
        python: Option<&Path>,
        announcement: &str,
    ) -> anyhow::Result<Self> {
        let tools = Self { folder };
        let stamp = Stamp::new(&tools.folder, std::slice::from_ref(&requirements))?;
        if stamp.is_current() && tools.command("python").arg("--version").works() {
            return Ok(tools);
        }
        let python = python::find(python)?;
        console::step(announcement);
        Cmd::new(&python.executable)
            .args(["-m", "venv", "--clear"])
            .arg(&tools.folder)
            .run()
            .or_hint("failed to make a virtual environment for the tools", INSTALL_HINT)?;
        tools
            .command("python")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(requirements)
            .run()
            .or_hint("failed to install the tools", INSTALL_HINT)?;
        stamp.set()?;
        Ok(tools)
    }

    /// `PATH` with these tools first, for programs that start each other.
    pub(crate) fn first_on_path(&self) -> OsString {
        let mut path = self.folder.join("bin").into_os_string();
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        path
    }

    /// A command line that starts one of the tools.
    pub(crate) fn command(&self, name: &str) -> Cmd {
        Cmd::new(self.folder.join("bin").join(name))
    }
}

/// `.venv`: what a user's environment would be.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    folder: PathBuf,
    root: PathBuf,
}

impl Environment {
    /// Makes `.venv` if needed and installs the groups that are not there yet.
    pub(crate) fn prepare(
        workspace: &Workspace,
        tools: &Tools,
        python: Option<&Path>,
        groups: &[Packages],
    ) -> anyhow::Result<Self> {
        let environment = Self { folder: workspace.path(VENV), root: workspace.root().to_path_buf() };
        environment.create(tools, python)?;
        for group in groups {
            environment.install(workspace, tools, *group)?;
        }
        Ok(environment)
    }

    /// A program in it.
    pub(crate) fn bin(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// As [`Self::bin`], relative to the checkout where that is the caller's folder: as a person would type it.
    pub(crate) fn typed(&self, name: &str) -> PathBuf {
        let path = self.bin(name);
        path.strip_prefix(&self.root).map_or_else(|_| path.clone(), Path::to_path_buf)
    }

    /// A file in it, for stamps.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn create(&self, tools: &Tools, python: Option<&Path>) -> anyhow::Result<()> {
        let wanted = python.map(|path| python::find(Some(path))).transpose()?;
        if self.serves(wanted.as_ref()) {
            return Ok(());
        }
        let python = match wanted {
            Some(python) => python,
            None => python::find(None)?,
        };
        let (major, minor) = python.version;
        console::step(format!("making .venv with Python {major}.{minor}"));
        tools
            .command("uv")
            .args(["venv", "--quiet", "--clear", "--python"])
            .arg(&python.executable)
            .arg(&self.folder)
            .run()
            .or_hint("failed to make `.venv`", "remove the folder `.venv` and run this again")
    }

    fn serves(&self, wanted: Option<&Python>) -> bool {
        let Ok(answer) = Cmd::new(self.bin("python"))
            .args(["-I", "-c", "import sys; print(sys.version_info[0], sys.version_info[1], sep='.')"])
            .read()
        else {
            return false;
        };
        wanted.is_none_or(|python| answer.trim() == format!("{}.{}", python.version.0, python.version.1))
    }

    fn install(&self, workspace: &Workspace, tools: &Tools, group: Packages) -> anyhow::Result<()> {
        let (requirements, constraints) = (workspace.path(group.file()), workspace.path(CONSTRAINTS));
        let stamp = Stamp::new(&self.folder, &[requirements.clone(), constraints.clone()])?;
        if stamp.is_current() {
            return Ok(());
        }
        console::step(group.announcement());
        self.pip(tools)
            .arg("--requirement")
            .arg(requirements)
            .arg("--constraint")
            .arg(constraints)
            .run()
            .or_hint(format!("failed to install what `{}` names", group.file()), INSTALL_HINT)?;
        stamp.set()
    }

    /// `uv pip install` into this environment.
    pub(crate) fn pip(&self, tools: &Tools) -> Cmd {
        tools.command("uv").args(["pip", "install", "--python"]).arg(self.bin("python"))
    }
}

/// A file that holds the text of what has been installed.
struct Stamp {
    file: PathBuf,
    text: String,
}

impl Stamp {
    fn new(folder: &Path, sources: &[PathBuf]) -> anyhow::Result<Self> {
        let mut text = String::new();
        for source in sources {
            text += &fs::read_to_string(source)
                .with_context(|| format!("failed to read `{}`", source.display()))?;
        }
        let name = sources.first().and_then(|path| path.file_stem()).unwrap_or_default();
        Ok(Self { file: folder.join(format!(".{}.installed", name.to_string_lossy())), text })
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text == self.text)
    }

    fn set(&self) -> anyhow::Result<()> {
        fs::write(&self.file, &self.text)
            .with_context(|| format!("failed to write `{}`", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_stamp_holds_until_a_source_changes() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("requirements.txt");
        fs::write(&source, "torch==1").unwrap();
        let stamp = Stamp::new(folder.path(), std::slice::from_ref(&source)).unwrap();
        assert!(!stamp.is_current());
        stamp.set().unwrap();
        assert!(stamp.is_current());
        fs::write(&source, "torch==2").unwrap();
        assert!(!Stamp::new(folder.path(), &[source]).unwrap().is_current());
    }
}
