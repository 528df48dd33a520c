//! A folder in which the command sees a project with its own files on top: an overlay of the kernel
//! (filesystems/overlayfs.rst). It is mounted for the command alone, in namespaces that need no privilege
//! (`user_namespaces(7)`, `mount_namespaces(7)`).
//!
//! A process of the supervisor's own keeps the namespaces, and the shared memory for the processes in them: from there they
//! cannot open the supervisor's entries in `/proc`.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, WaitOptions, getegid, geteuid, kill_process, waitpid};

use crate::signals;
use crate::witness::sleep_until_killed;

/// Characters that separate the options of a mount.
const SEPARATORS: [char; 4] = [',', ':', '\\', '"'];

/// What lies on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// The project, which the command does not change. What it does below this path happens in `upper`.
    pub lower: Utf8PathBuf,
    /// What was made and changed. Here the command sees both. It does not lie in `lower`.
    pub upper: Utf8PathBuf,
    /// An empty folder on the same disk, for the kernel.
    pub work: Utf8PathBuf,
}

impl Overlay {
    /// Whether the system mounts it for this user.
    pub fn works(&self) -> bool {
        Holder::start(self, &[]).is_ok()
    }
}

/// The process that keeps the namespaces.
#[derive(Debug)]
pub(crate) struct Holder {
    pid: Pid,
    user: File,
    mounts: File,
}

/// How a forked child gets into the namespaces.
#[derive(Debug, Clone)]
pub(crate) struct Joining {
    user: RawFd,
    mounts: RawFd,
    directory: CString,
}

/// What the holder needs, made before the fork.
struct Plan {
    upper: CString,
    lower: CString,
    options: CString,
    user: String,
    group: String,
    probe: CString,
}

impl Holder {
    /// Starts it; it keeps these descriptors open. It ends with the supervisor, however that ends.
    ///
    /// # Errors
    /// The error of the system if it gives no namespaces or mounts no overlay.
    pub(crate) fn start(overlay: &Overlay, memory: &[RawFd]) -> io::Result<Self> {
        let plan = Plan::of(overlay)?;
        let (mut answer, writer) = io::pipe()?;
        let kept: Vec<RawFd> = memory.iter().copied().chain([writer.as_raw_fd()]).collect();
        let parent = std::process::id();
        let before = signals::change_mask(libc::SIG_SETMASK, &signals::all())?;
        // SAFETY: the child calls only async-signal-safe functions, and never returns.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            hand_over(writer.as_raw_fd(), plan.mount());
            sleep_until_killed(parent, &kept[..memory.len()]);
        }
        let error = io::Error::last_os_error();
        signals::change_mask(libc::SIG_SETMASK, &before)?;
        let pid = Pid::from_raw(forked).filter(|_| forked > 0).ok_or(error)?;
        let process = Ended(pid);
        drop(writer);
        let mut code = [0; 4];
        answer.read_exact(&mut code)?;
        match i32::from_ne_bytes(code) {
            0 => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
        let open = |name| File::open(format!("/proc/{}/ns/{name}", pid.as_raw_nonzero()));
        let (user, mounts) = (open("user")?, open("mnt")?);
        std::mem::forget(process);
        Ok(Self { pid, user, mounts })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// For a child that is to work in this directory.
    pub(crate) fn joining(&self, directory: &Utf8Path) -> io::Result<Joining> {
        let directory = CString::new(directory.as_str())?;
        Ok(Joining { user: self.user.as_raw_fd(), mounts: self.mounts.as_raw_fd(), directory })
    }
}

/// Ends a process when it is dropped.
struct Ended(Pid);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(Ended(self.pid));
    }
}

impl Joining {
    /// Async-signal-safe.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // SAFETY: takes numbers alone.
        checked(unsafe { libc::setns(self.user, libc::CLONE_NEWUSER) })?;
        // SAFETY: takes numbers alone.
        checked(unsafe { libc::setns(self.mounts, libc::CLONE_NEWNS) })?;
        // SAFETY: a string that ends with a zero.
        checked(unsafe { libc::chdir(self.directory.as_ptr()) })
    }
}

impl Plan {
    fn of(overlay: &Overlay) -> io::Result<Self> {
        let Overlay { lower, upper, work } = overlay;
        if [lower, upper, work].iter().any(|path| path.as_str().contains(SEPARATORS)) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let options = format!("userxattr,lowerdir={lower},upperdir={upper},workdir={work}");
        Ok(Self {
            upper: CString::new(upper.as_str())?,
            lower: CString::new(lower.as_str())?,
            options: CString::new(options)?,
            user: format!("{user} {user} 1"),
            group: format!("{group} {group} 1"),
            probe: CString::new(upper.join(".caulk-overlay").as_str())?,
        })
    }

    /// Mounts the overlay in new namespaces of the calling process, over both folders; async-signal-safe.
    fn mount(&self) -> io::Result<()> {
        // SAFETY: takes numbers alone.
        checked(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", self.user.as_bytes())?;
        write(c"/proc/self/gid_map", self.group.as_bytes())?;
        let none = std::ptr::null();
        let private = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: strings that end with a zero; a change of propagation needs no other arguments.
        checked(unsafe { libc::mount(none, c"/".as_ptr(), none, private, none.cast()) })?;
        let (kind, options) = (c"overlay".as_ptr(), self.options.as_ptr().cast());
        // SAFETY: strings that end with a zero.
        checked(unsafe { libc::mount(kind, self.upper.as_ptr(), kind, 0, options) })?;
        // SAFETY: strings that end with a zero; a bind mount needs no other arguments.
        checked(unsafe {
            libc::mount(self.upper.as_ptr(), self.lower.as_ptr(), none, libc::MS_BIND, none.cast())
        })?;
        // Some file systems carry an overlay that cannot be written to.
        // SAFETY: a string that ends with a zero.
        checked(unsafe { libc::mkdir(self.probe.as_ptr(), 0o700) })?;
        // SAFETY: a string that ends with a zero.
        checked(unsafe { libc::rmdir(self.probe.as_ptr()) })?;
        give_up_privileges()
    }
}

/// Processes in the namespaces may look at this one only if it can do no more than they can (ptrace(2)).
fn give_up_privileges() -> io::Result<()> {
    /// Of `linux/capability.h`: version 3, the calling process, three sets of 64 bits.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    const NOTHING: [u32; 6] = [0; 6];
    // SAFETY: the kernel reads a header and three empty sets of this version.
    checked(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), NOTHING.as_ptr()) } as i32)?;
    // SAFETY: takes numbers alone.
    checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) })
}

/// Async-signal-safe.
fn write(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: a string that ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    checked(file)?;
    // SAFETY: `text` has this length.
    let count = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
    let written = checked(count as i32);
    // SAFETY: the descriptor was opened above, and is used by nothing else.
    unsafe { libc::close(file) };
    written
}

/// Reports the result to the supervisor, and ends the process after an error; async-signal-safe.
fn hand_over(pipe: RawFd, result: io::Result<()>) {
    let code = result.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO)).to_ne_bytes();
    // SAFETY: `code` has this length.
    unsafe { libc::write(pipe, code.as_ptr().cast(), code.len()) };
    if code != [0; 4] {
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
}

fn checked(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_command_writes_stays_on_top() {
        let guard = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(guard.path()).unwrap();
        let overlay =
            Overlay { lower: base.join("lower"), upper: base.join("upper"), work: base.join("work") };
        for folder in [&overlay.lower, &overlay.upper, &overlay.work] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(overlay.lower.join("data"), "1").unwrap();
        // Some machines allow no namespaces.
        let Ok(holder) = Holder::start(&overlay, &[]) else { return };
        let joining = holder.joining(&overlay.upper).unwrap();
        let script = format!("cat data; echo 2 > data; echo 3 > {}/new; cat new", overlay.lower);
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        // SAFETY: the closure runs after fork and calls async-signal-safe functions alone.
        unsafe { command.pre_exec(move || joining.enter()) };
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "13\n");
        assert_eq!(fs::read_to_string(overlay.lower.join("data")).unwrap(), "1");
        assert_eq!(fs::read_to_string(overlay.upper.join("data")).unwrap(), "2\n");
        assert!(overlay.upper.join("new").exists() && !overlay.lower.join("new").exists());
    }

    #[test]
    fn a_path_that_no_option_of_a_mount_can_name_is_refused() {
        let path = |text: &str| Utf8PathBuf::from(text);
        let overlay = Overlay { lower: path("/a,b"), upper: path("/c"), work: path("/d") };
        assert!(!overlay.works());
    }
}
