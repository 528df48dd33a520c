//! The socket on which agents report, and the agents that are connected.
//!
//! It lies in a folder that only this user enters; who connects is asked of the kernel. What a client sends is
//! believed frame by frame: one that sends anything else is closed, the others do not notice.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::{Command, DecodeError, FrameBuffer, Message};
use rustix::net::{SendFlags, send};

/// Longest path of a Unix socket, without the zero at its end.
const LONGEST_PATH: usize = 107;

/// Folders of this name, with something random behind it, are caulk's.
const FOLDER: &str = "caulk-";

/// More clients than this wait in the kernel's queue.
const MOST_CLIENTS: usize = 512;

/// Read from one client before the others get their turn, in bytes.
const AT_ONCE: usize = 256 << 10;

/// The run's folder in the runtime directory, removed at the end, and the socket in it.
#[derive(Debug)]
pub(crate) struct Runtime {
    mark: String,
    folder: Option<Utf8PathBuf>,
    listener: Option<UnixListener>,
    paused: bool,
}

/// One that is connected.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// Process id when it connected; 0 where this process cannot see it.
    pid: u32,
    frames: FrameBuffer,
    /// It was said that it sends messages which this version does not know.
    said_unknown: bool,
}

/// All that are connected.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    clients: Vec<Client>,
}

/// What clients had to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A message, with the process id of its sender.
    Message(u32, Box<Message>),
    /// The agent of this process has closed the connection, as it does at the latest when the process ends.
    HungUp(u32),
    /// For the report: why a client was closed, or that it runs another version.
    Noted(String),
}

impl Runtime {
    /// Makes folder and socket in the first of the usual places that allows it; without any there are no agents.
    pub(crate) fn open(chosen: Option<&Utf8Path>) -> (Self, Option<io::Error>) {
        let mark = mark();
        let mut failure = None;
        for place in places(chosen) {
            match listen(&place, &mark) {
                Ok((folder, listener)) => {
                    sweep(&place);
                    return (
                        Self { mark, folder: Some(folder), listener: Some(listener), paused: false },
                        None,
                    );
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        (Self { mark, folder: None, listener: None, paused: false }, failure)
    }

    /// Text by which processes of this run are recognised.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Path of the socket.
    pub(crate) fn socket(&self) -> Option<Utf8PathBuf> {
        Some(self.folder.as_ref()?.join("s"))
    }

    /// Folder of the socket.
    pub(crate) fn folder(&self) -> Option<&Utf8Path> {
        self.folder.as_deref()
    }

    /// Descriptor to wait on.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().filter(|_| !self.paused).map(AsFd::as_fd)
    }

    /// Takes in who waits to be connected.
    pub(crate) fn accept(&mut self, clients: &mut Clients) {
        let Some(listener) = &self.listener else {
            return;
        };
        while clients.have_room() {
            match listener.accept() {
                Ok((stream, _)) => clients.add(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Without descriptors to be had the caller would be told at once that somebody waits, for ever.
                    self.paused = error.kind() != io::ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }

    /// Listens again after descriptors had run out.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_file(folder.join("s"));
            let _ = fs::remove_file(folder.join("caulk"));
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Clients {
    /// Adds a client if it belongs to this user, or to root.
    fn add(&mut self, stream: UnixStream) {
        let Ok(peer) = peer(&stream) else {
            return;
        };
        let user = rustix::process::geteuid().as_raw();
        if (peer.uid != user && peer.uid != 0) || stream.set_nonblocking(true).is_err() {
            return;
        }
        let pid = peer.pid as u32;
        self.clients.push(Client { stream, pid, frames: FrameBuffer::default(), said_unknown: false });
    }

    /// Descriptors to wait on.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.clients.iter().map(|client| client.stream.as_fd())
    }

    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// True where one more can be taken in.
    pub(crate) fn have_room(&self) -> bool {
        self.clients.len() < MOST_CLIENTS
    }

    /// Reads from those that are ready, without waiting; true if there was anything.
    pub(crate) fn hear(&mut self, ready: &[bool], heard: &mut Vec<Heard>) -> bool {
        let mut news = false;
        let mut ready = ready.iter();
        self.clients.retain_mut(|client| {
            if !ready.next().is_some_and(|&ready| ready) {
                return true;
            }
            let reading = client.read();
            news |= reading.bytes > 0;
            let is_an_agent = client.decode(heard);
            if reading.ended {
                heard.push(Heard::HungUp(client.pid));
            }
            is_an_agent && !reading.ended
        });
        news
    }

    /// Says something to all of them, without waiting.
    pub(crate) fn tell(&self, command: &Command) {
        self.tell_those(|_| true, command);
    }

    /// Says something to some of them, without waiting.
    pub(crate) fn tell_some(&self, pids: &BTreeSet<u32>, command: &Command) {
        self.tell_those(|pid| pids.contains(&pid), command);
    }

    fn tell_those(&self, wanted: impl Fn(u32) -> bool, command: &Command) {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        for client in self.clients.iter().filter(|client| wanted(client.pid)) {
            let _ = send(&client.stream, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

/// What one turn of reading gave.
struct Reading {
    bytes: usize,
    ended: bool,
}

impl Client {
    fn read(&mut self) -> Reading {
        let mut bytes = 0;
        let mut buffer = [0; 16 << 10];
        while bytes < AT_ONCE {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Reading { bytes, ended: true },
                Ok(count) => {
                    self.frames.extend(&buffer[..count]);
                    bytes += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client that was killed with unread commands resets the connection: what it said before counts.
                Err(_) => return Reading { bytes, ended: true },
            }
        }
        Reading { bytes, ended: false }
    }

    /// Takes the whole frames; false where the stream is not an agent's.
    fn decode(&mut self, heard: &mut Vec<Heard>) -> bool {
        loop {
            let message = match self.frames.next_frame() {
                Ok(None) => return true,
                Ok(Some(frame)) => Message::decode(&frame),
                Err(error) => Err(error),
            };
            match message {
                Ok(message) => {
                    self.identify(&message);
                    heard.push(Heard::Message(self.pid, Box::new(message)));
                }
                Err(error @ (DecodeError::UnknownTag(_) | DecodeError::UnknownCode(..))) => {
                    if !std::mem::replace(&mut self.said_unknown, true) {
                        let text = format!(
                            "process {} runs another version of caulk ({error}): messages that this one does not know \
                             are left out. Install the same version for the command and the program",
                            self.pid
                        );
                        heard.push(Heard::Noted(text));
                    }
                }
                Err(error) => {
                    let text = format!(
                        "process {} said something that no caulk says ({error}) and is not listened to any more: what \
                         happens inside it from then on is not known",
                        self.pid
                    );
                    heard.push(Heard::Noted(text));
                    return false;
                }
            }
        }
    }

    /// Believes the process id it names where the kernel cannot name one.
    fn identify(&mut self, message: &Message) {
        if let (0, Message::Hello(hello)) = (self.pid, message) {
            self.pid = hello.pid;
        }
    }
}

/// Who is at the other end. (rustix's form of it has no value for a process that this one cannot see, which is 0.)
fn peer(stream: &UnixStream) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: `peer` has room for `length` bytes, and any bytes are a valid value of it.
    let answer = unsafe {
        libc::getsockopt(stream.as_raw_fd(), level, option, (&raw mut peer).cast(), &raw mut length)
    };
    if answer == 0 { Ok(peer) } else { Err(io::Error::last_os_error()) }
}

/// Where the folder may be made, best first. /tmp is the same for the program unless it has one of its own.
fn places(chosen: Option<&Utf8Path>) -> Vec<Utf8PathBuf> {
    if let Some(chosen) = chosen {
        return vec![chosen.to_owned()];
    }
    let set = |name| env::var(name).ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let fixed = ["/tmp", "/var/tmp", "/dev/shm"].map(Utf8PathBuf::from);
    set("XDG_RUNTIME_DIR").into_iter().chain(fixed).chain(set("TMPDIR")).collect()
}

/// Makes the folder, for this user alone, and listens in it.
fn listen(place: &Utf8Path, mark: &str) -> io::Result<(Utf8PathBuf, UnixListener)> {
    let folder = place.join(format!("{FOLDER}{}", &mark[..12]));
    let socket = folder.join("s");
    if socket.as_str().len() > LONGEST_PATH {
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, "path too long for a socket"));
    }
    DirBuilder::new().mode(0o700).create(&folder)?;
    let listener = UnixListener::bind(&socket).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    match listener {
        Ok(listener) => Ok((folder, listener)),
        Err(error) => {
            let _ = fs::remove_file(&socket);
            let _ = fs::remove_dir(&folder);
            Err(error)
        }
    }
}

/// Removes what killed supervisors have left: folders of this user with a socket on which nobody listens.
fn sweep(place: &Utf8Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in place.read_dir_utf8().into_iter().flatten().flatten() {
        let socket = entry.path().join("s");
        let ours = entry.file_name().starts_with(FOLDER)
            && fs::symlink_metadata(entry.path()).is_ok_and(|data| data.is_dir() && data.uid() == user);
        let refused =
            || UnixStream::connect(&socket).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
        if ours && refused() {
            let _ = fs::remove_file(&socket);
            let _ = fs::remove_file(entry.path().join("caulk"));
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// 32 random hexadecimal digits.
fn mark() -> String {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    if digits.len() == 32 {
        return digits;
    }
    format!("{:016x}{:016x}", crate::clock::now_ns(), std::process::id())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::io::Write;

    use caulk_core::wire::Bye;

    use super::*;

    #[test]
    fn what_an_agent_has_said_comes_before_its_hanging_up() {
        let (mut agent, stream) = UnixStream::pair().unwrap();
        let mut clients = Clients::default();
        clients.add(stream);
        let mut bytes = Vec::new();
        Message::from(Bye::default()).encode(&mut bytes);
        agent.write_all(&bytes).unwrap();
        drop(agent);
        let mut heard = Vec::new();
        while clients.len() > 0 {
            clients.hear(&[true], &mut heard);
        }
        let pid = std::process::id();
        assert_eq!(heard, [Heard::Message(pid, Box::new(Bye::default().into())), Heard::HungUp(pid)]);
    }

    #[test]
    fn an_agent_of_another_version_is_listened_to_and_noted_once() {
        let (mut agent, stream) = UnixStream::pair().unwrap();
        let mut clients = Clients::default();
        clients.add(stream);
        // A message of an unknown kind, and a `Boundary` with an unknown unit.
        let mut bytes = vec![1, 0, 0, 0, 250, 4, 0, 0, 0, 2, 0, 0, 77];
        Message::from(Bye::default()).encode(&mut bytes);
        agent.write_all(&bytes).unwrap();
        let mut heard = Vec::new();
        clients.hear(&[true], &mut heard);
        let [Heard::Noted(note), Heard::Message(_, message)] = &heard[..] else { panic!("{heard:?}") };
        assert!(note.contains("another version of caulk") && note.contains("250"), "{note}");
        assert_eq!((**message == Bye::default().into(), clients.len()), (true, 1));
    }
}
