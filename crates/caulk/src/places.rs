//! Where recordings are: the folder that `CAULK_HOME` names, or `.caulk` here. Where that cannot be written, a training
//! is not refused: its recording goes to a folder of the user's own, in which it is looked for from here again.

use std::env;
use std::io;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_record::{HomeError, RunEntry};

use crate::printer::Printer;
use crate::target;

/// Less room than this is none.
const LEAST_BYTES: u64 = 1 << 20;

/// Where users keep the state of their programs: a folder that this variable names, or one below the home folder.
const STATE: &str = "XDG_STATE_HOME";

/// Folders with recordings.
#[derive(Debug)]
pub(crate) struct Places {
    /// Where recordings are unless that cannot be written.
    pub(crate) home: Utf8PathBuf,
    /// Where else they may go, best first. Runs of all directories share these.
    pub(crate) spare: Vec<Utf8PathBuf>,
    /// The user has chosen the first one.
    pub(crate) chosen: bool,
}

impl Places {
    /// Those of the working directory, as a person there would type them.
    pub(crate) fn here() -> Self {
        let chosen = env::var(caulk_record::HOME_VARIABLE).ok().filter(|home| !home.is_empty());
        let home = caulk_record::home(Utf8Path::new(""), chosen.as_deref());
        let chosen = chosen.is_some();
        Self { home, spare: if chosen { Vec::new() } else { spare() }, chosen }
    }

    /// Says where runs are not looked for, because another user has put something there.
    pub(crate) fn warn(&self, printer: Printer) {
        if let Err(error) = caulk_record::refuse_foreign(&self.home) {
            printer.warn_of(&error.into(), None);
        }
    }

    /// The runs that were recorded from here, newest first, and the folders that cannot be read, where there are such.
    pub(crate) fn runs(&self) -> (Vec<RunEntry>, Vec<HomeError>) {
        let mut unreadable = Vec::new();
        let mut list = |place: &Utf8Path| {
            caulk_record::list(place).unwrap_or_else(|error| {
                unreadable.push(error);
                Vec::new()
            })
        };
        let mut runs = list(&self.home);
        let here = target::directory();
        let of_here = |run: &RunEntry| {
            run.info.as_ref().is_ok_and(|info| Path::new(&info.target.directory) == here.as_path())
        };
        runs.extend(self.spare.iter().flat_map(|place| list(place)).filter(of_here));
        runs.sort_by(|a, b| b.age().cmp(&a.age()));
        (runs, unreadable)
    }

    /// The folder of the newest run.
    ///
    /// # Errors
    /// [`HomeError::Unreadable`] if there may be one, [`HomeError::Empty`] if there is none.
    pub(crate) fn latest(&self) -> Result<Utf8PathBuf, HomeError> {
        let (runs, unreadable) = self.runs();
        let none = || HomeError::Empty { home: self.home.clone() };
        let newest = runs.into_iter().next().map(|run| run.folder);
        newest.ok_or_else(|| unreadable.into_iter().next().unwrap_or_else(none))
    }

    /// The folder of the run that a person means.
    ///
    /// # Errors
    /// As [`caulk_record::resolve`] says it of the usual place, unless another one has several of that name.
    pub(crate) fn resolve(&self, name: &str) -> Result<Utf8PathBuf, HomeError> {
        let mut found = caulk_record::resolve(&self.home, name);
        for place in &self.spare {
            if matches!(found, Ok(_) | Err(HomeError::Ambiguous { .. })) {
                break;
            }
            let there = caulk_record::resolve(place, name);
            if matches!(there, Ok(_) | Err(HomeError::Ambiguous { .. })) {
                found = there;
            }
        }
        found
    }
}

/// Whether a recording has room in a folder.
///
/// # Errors
/// What the system says of a full disk.
pub(crate) fn room(folder: &Utf8Path) -> io::Result<()> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if most.is_some_and(|most| most < LEAST_BYTES) {
        return Err(rustix::io::Errno::FBIG.into());
    }
    // Some file systems do not know; writing will show.
    let is_full = rustix::fs::statvfs(folder.as_std_path())
        .is_ok_and(|disk| disk.f_blocks > 0 && disk.f_bavail.saturating_mul(disk.f_frsize) < LEAST_BYTES);
    if is_full { Err(rustix::io::Errno::NOSPC.into()) } else { Ok(()) }
}

/// Folders that outlive the machine's next start, then some that may not.
fn spare() -> Vec<Utf8PathBuf> {
    let set = |name| env::var(name).ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let state = set(STATE).or_else(|| Some(set("HOME")?.join(".local/state")));
    // Others may write to these: the name is of this user.
    let user = rustix::process::geteuid().as_raw();
    let temporary = ["/tmp", "/var/tmp"].map(Utf8PathBuf::from);
    let temporary =
        set("TMPDIR").into_iter().chain(temporary).map(|place| place.join(format!("caulk-home-{user}")));
    let mut places: Vec<Utf8PathBuf> = Vec::new();
    for place in state.map(|state| state.join("caulk")).into_iter().chain(temporary) {
        if is_private(&place, user) && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Not there yet, or a folder of this user.
fn is_private(place: &Utf8Path, user: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    match place.symlink_metadata() {
        Ok(found) => found.is_dir() && found.uid() == user,
        Err(_) => true,
    }
}
