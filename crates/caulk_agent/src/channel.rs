//! The agent's end of the supervisor's socket. Never blocks, never raises SIGPIPE, never writes into a descriptor that
//! has become somebody else's, and gives up quietly when the supervisor is gone.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use caulk_wire::{Command, FrameBuffer, Message};

/// Bytes that wait for a slow supervisor before messages are dropped.
const BACKLOG: usize = 1 << 20;
/// Descriptors below this are left to the program, which may expect the lowest ones free.
const LOWEST_DESCRIPTOR: i32 = 500;

/// A connection to the supervisor, made when the first message is sent.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    path: String,
    connection: Option<Connection>,
    backlog: Vec<u8>,
    dropped: u64,
    closed: bool,
    heard: FrameBuffer,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// What the descriptor is: a program may close every descriptor and get this number for a file of its own.
    identity: Identity,
}

/// Device and inode of an open file.
type Identity = (libc::dev_t, libc::ino_t);

impl Channel {
    pub(crate) fn new(path: String) -> Self {
        Self { closed: path.is_empty(), path, ..Self::default() }
    }

    /// Forgets a connection inherited by fork; the next message makes a new one.
    pub(crate) fn after_fork(&mut self) {
        // The parent's descriptor is closed in this process only where it is still the socket.
        if let Some(connection) = self.connection.take()
            && !connection.is_ours()
        {
            std::mem::forget(connection.socket);
        }
        self.backlog.clear();
        self.heard = FrameBuffer::default();
    }

    /// What the supervisor has said, if it has said anything yet.
    pub(crate) fn receive(&mut self) -> Option<Command> {
        let connection = self.connection.as_ref().filter(|connection| connection.is_ours())?;
        let mut bytes = [0; 256];
        while let Some(count @ 1..) = connection.read(&mut bytes) {
            self.heard.extend(&bytes[..count]);
        }
        // What is not understood is of a later version, or nobody's: it is passed over.
        let frame = self.heard.next_frame().ok()??;
        Command::decode(&frame).ok()
    }

    /// Messages dropped because the supervisor did not read.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Has the supervisor gone, or was there none?
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn send(&mut self, message: &Message) {
        if self.closed {
            return;
        }
        if self.backlog.len() > BACKLOG {
            self.dropped += 1;
            return;
        }
        message.encode(&mut self.backlog);
        self.flush();
    }

    fn flush(&mut self) {
        if self.connection.is_none() {
            match Connection::open(&self.path) {
                Ok(connection) => self.connection = Some(connection),
                // A busy supervisor does not take anybody just now: the next message tries again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.close(),
            }
        }
        let Some(connection) = &self.connection else { return };
        if !connection.is_ours() {
            std::mem::forget(self.connection.take());
            return self.close();
        }
        match connection.write(&self.backlog) {
            Ok(written) => drop(self.backlog.drain(..written)),
            Err(()) => self.close(),
        }
    }

    fn close(&mut self) {
        self.closed = true;
        self.connection = None;
        self.backlog = Vec::new();
    }
}

impl Connection {
    /// Connects without ever waiting.
    ///
    /// # Errors
    /// `WouldBlock` where the supervisor's queue is full (it is stopped, or very many children greet at once).
    fn open(path: &str) -> io::Result<Self> {
        let address = address_of(Path::new(path))?;
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: makes a descriptor; the result is checked.
        let low = owned(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
        // SAFETY: duplicates a descriptor that is open; the result is checked.
        let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR) };
        let socket = owned(high).unwrap_or(low);
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: an open socket and an address of this length.
        if unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let identity = identity(&socket).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { socket, identity })
    }

    fn is_ours(&self) -> bool {
        identity(&self.socket) == Some(self.identity)
    }

    /// Number of bytes that were there to be read.
    fn read(&self, bytes: &mut [u8]) -> Option<usize> {
        let (socket, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: an open socket and a writable buffer of this length.
        let count = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), flags) };
        usize::try_from(count).ok()
    }

    /// Bytes taken by the socket, as many as it takes now.
    fn write(&self, mut bytes: &[u8]) -> Result<usize, ()> {
        let all = bytes.len();
        while !bytes.is_empty() {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: an open socket and a readable buffer of this length.
            let sent =
                unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
            if sent < 0 {
                match io::Error::last_os_error().kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => break,
                    _ => return Err(()),
                }
            }
            bytes = &bytes[sent as usize..];
        }
        Ok(all - bytes.len())
    }
}

/// A descriptor that was just made.
fn owned(descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn address_of(path: &Path) -> io::Result<libc::sockaddr_un> {
    let mut address =
        libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    let bytes = path.as_os_str().as_bytes();
    // The last byte stays zero.
    if bytes.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(address)
}

fn identity(socket: &OwnedFd) -> Option<Identity> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a place for the answer; a closed descriptor is an error, not undefined.
    if unsafe { libc::fstat(socket.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: `fstat` succeeded and filled it.
    let stat = unsafe { stat.assume_init() };
    Some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn note(text: &str) -> Message {
        Message::Note(caulk_wire::Note { code: caulk_wire::NoteCode::Unnamed, text: text.into() })
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("caulk-channel-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("temporary folder");
        folder
    }

    #[test]
    fn a_descriptor_that_became_a_file_is_left_alone() {
        let folder = folder("reuse");
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).expect("bind");
        let mut channel = Channel::new(path.to_string_lossy().into_owned());
        channel.send(&note("one"));
        let (mut server, _) = listener.accept().expect("accept");
        let descriptor = channel.connection.as_ref().expect("connected").socket.as_raw_fd();

        let file = std::fs::File::create(folder.join("theirs")).expect("file");
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(file.as_raw_fd(), descriptor) };
        channel.send(&note("two"));

        assert_eq!(std::fs::read(folder.join("theirs")).expect("readable"), b"");
        let mut received = Vec::new();
        server.read_to_end(&mut received).expect("closed by the reuse of the descriptor");
        let mut expected = Vec::new();
        note("one").encode(&mut expected);
        assert_eq!(received, expected);
        std::fs::remove_dir_all(folder).expect("removable");
    }

    #[test]
    fn a_supervisor_that_accepts_nobody_is_not_waited_for() {
        let folder = folder("stopped");
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).expect("bind");
        // SAFETY: a listening socket; its queue holds one more than it is told.
        unsafe { libc::listen(listener.as_raw_fd(), 0) };
        let path = path.to_string_lossy().into_owned();
        let mut first = Channel::new(path.clone());
        first.send(&note("first"));

        let mut second = Channel::new(path);
        second.send(&note("second"));
        assert!(second.connection.is_none() && !second.closed);

        drop(listener.accept().expect("the first is taken"));
        second.send(&note("third"));
        let (mut server, _) = listener.accept().expect("accept");
        drop(second);
        let mut received = Vec::new();
        server.read_to_end(&mut received).expect("readable");
        let mut expected = Vec::new();
        note("second").encode(&mut expected);
        note("third").encode(&mut expected);
        assert_eq!(received, expected);
        std::fs::remove_dir_all(folder).expect("removable");
    }

    #[test]
    fn without_a_supervisor_nothing_happens() {
        let mut channel = Channel::new("/nonexistent/socket".into());
        channel.send(&note("lost"));
        assert!(channel.closed);
    }
}
