//! Control groups that caulk makes for the command, below its own: limits that are there already hold on.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::clock;

/// Where a group can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    folder: Utf8PathBuf,
    files: &'static Files,
}

/// What is written into a new group, by version.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    limit: &'static str,
    /// All processes go together, so that what is left does not wait for what is gone.
    together: Option<&'static str>,
}

const VERSION_2: Files = Files { limit: "memory.max", together: Some("memory.oom.group") };
const VERSION_1: Files = Files { limit: "memory.limit_in_bytes", together: None };

/// A group that was made; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    folder: Utf8PathBuf,
}

impl Parent {
    /// The calling process's own group of version 2, if it may be divided. A group with processes in it may not, but for
    /// the root.
    pub(super) fn version_2(
        proc_root: &Utf8Path,
        cgroup_root: &Utf8Path,
        bytes: u64,
    ) -> Result<Self, String> {
        let folder = own(proc_root, "", cgroup_root)
            .or_else(|| own(proc_root, "", &cgroup_root.join("unified")))
            .ok_or("there are no control groups of version 2")?;
        let has_memory = |file: &str| {
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            text.split_whitespace().any(|name| name == "memory")
        };
        if !has_memory("cgroup.controllers") {
            return Err(format!("{folder} limits no memory"));
        }
        if !has_memory("cgroup.subtree_control") {
            let divide = write(&folder.join("cgroup.subtree_control"), "+memory");
            divide.map_err(|error| match error.raw_os_error() {
                Some(libc::EBUSY) => format!("{folder} has processes in it and cannot be divided"),
                _ => format!("{folder} cannot be divided: {error}"),
            })?;
        }
        Self { folder, files: &VERSION_2 }.tried(bytes)
    }

    /// The calling process's own group of version 1.
    pub(super) fn version_1(
        proc_root: &Utf8Path,
        cgroup_root: &Utf8Path,
        bytes: u64,
    ) -> Result<Self, String> {
        let folder = own(proc_root, "memory", &cgroup_root.join("memory"))
            .ok_or("there are no control groups of version 1 that limit memory")?;
        Self { folder, files: &VERSION_1 }.tried(bytes)
    }

    fn tried(self, bytes: u64) -> Result<Self, String> {
        match self.make(bytes).and_then(|group| group.door()) {
            Ok(_) => Ok(self),
            Err(error) => Err(format!("no control group can be made in {}: {error}", self.folder)),
        }
    }

    /// Makes a group with the limit.
    pub(super) fn make(&self, bytes: u64) -> io::Result<Group> {
        let name = format!("caulk-{}-{}", std::process::id(), clock::now_ns());
        let group = Group { folder: self.folder.join(name) };
        fs::create_dir(&group.folder)?;
        write(&group.folder.join(self.files.limit), &bytes.to_string())?;
        if let Some(file) = self.files.together {
            write(&group.folder.join(file), "1")?;
        }
        Ok(group)
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.folder.fmt(f)
    }
}

impl Group {
    /// What a process writes to that goes into it.
    pub(super) fn door(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Refused where a process that the command has left is still in it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The folder of the calling process's own group below the mount; in a container its path may not be there, and the mount
/// is the group.
fn own(proc_root: &Utf8Path, controller: &str, mount: &Utf8Path) -> Option<Utf8PathBuf> {
    let table = fs::read_to_string(proc_root.join("self/cgroup")).unwrap_or_default();
    let path = table.lines().find_map(|row| {
        let mut fields = row.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let below = Some(path.trim_start_matches('/')).filter(|path| !path.is_empty());
    let below = below.map(|path| mount.join(path));
    below.into_iter().chain([mount.to_owned()]).find(|folder| folder.join("cgroup.procs").exists())
}

/// Writes to a file that the kernel has made.
fn write(file: &Utf8Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    io::Write::write_all(&mut file, text.as_bytes())
}
