//! What `/proc` says about a process, read by hand into one buffer: this runs four times a second for every process.
//!
//! A file that is gone, empty or of another form gives `None`: the process has ended.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What of `statm` is used, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statm {
    /// Address space.
    pub(crate) size: u64,
    pub(crate) resident: u64,
    pub(crate) shared: u64,
    /// Private writable mappings.
    pub(crate) data: u64,
}

/// What of `stat` is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: u8,
    pub(crate) parent: u32,
    /// User and system time, in clock ticks.
    pub(crate) cpu_ticks: u64,
    pub(crate) threads: u32,
    /// Start after boot, in clock ticks: with the process id, who it is.
    pub(crate) start_ticks: u64,
}

/// What of `smaps_rollup` is used, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rollup {
    pub(crate) pss: u64,
    pub(crate) private_dirty: u64,
    pub(crate) swap: u64,
}

/// A buffer that is used again for every file.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    /// Longest file that is read whole, in bytes; of a longer one the beginning.
    const LONGEST: usize = 256 << 10;

    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; 4096] }
    }

    /// Contents of the file now.
    pub(crate) fn open(&mut self, path: impl AsRef<Path>) -> io::Result<&[u8]> {
        let file = File::open(path)?;
        self.read(&file)
    }

    /// Contents of the open file now; `/proc` and control groups answer anew at every read from the beginning.
    pub(crate) fn read(&mut self, file: &File) -> io::Result<&[u8]> {
        let mut filled = 0;
        loop {
            match file.read_at(&mut self.buffer[filled..], filled as u64) {
                Ok(0) => return Ok(&self.buffer[..filled]),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if filled == self.buffer.len() {
                if filled >= Self::LONGEST {
                    return Ok(&self.buffer[..filled]);
                }
                self.buffer.resize(filled * 4, 0);
            }
        }
    }

    /// `/proc/PID/FILE` now.
    pub(crate) fn process(&mut self, pid: u32, file: &str) -> io::Result<&[u8]> {
        self.open(format!("/proc/{pid}/{file}"))
    }

    /// `stat` of a process; `None` once it has ended.
    pub(crate) fn stat(&mut self, pid: u32) -> Option<Stat> {
        Stat::parse(self.process(pid, "stat").ok()?)
    }

    /// Arguments of a process, the program first; empty for one that has ended.
    pub(crate) fn arguments(&mut self, pid: u32) -> Vec<String> {
        let bytes = self.process(pid, "cmdline").unwrap_or_default();
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        if bytes.is_empty() {
            return Vec::new();
        }
        bytes.split(|&byte| byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }
}

impl Statm {
    /// Parses `statm`; `None` where all is zero, as it is for a process that has ended and was not waited for.
    pub(crate) fn parse(bytes: &[u8], page: u64) -> Option<Self> {
        // `size resident shared text lib data dt`, in pages.
        let mut numbers = bytes.split(u8::is_ascii_whitespace).map(number);
        let size = numbers.next()?? * page;
        let resident = numbers.next()?? * page;
        let shared = numbers.next()?? * page;
        let data = numbers.nth(2)?? * page;
        (size > 0).then_some(Self { size, resident, shared, data })
    }
}

impl Stat {
    /// Parses `stat`. The name may hold spaces and parentheses: fields are counted from its last one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let open = bytes.iter().position(|&byte| byte == b'(')?;
        let close = bytes.iter().rposition(|&byte| byte == b')')?;
        let name = String::from_utf8_lossy(bytes.get(open + 1..close)?).into_owned();
        let rest: Vec<&[u8]> = bytes.get(close + 2..)?.split(u8::is_ascii_whitespace).collect();
        // Fields as proc(5) numbers them, the state being the third.
        let field = |index: usize| number(rest.get(index - 3)?);
        Some(Self {
            name,
            state: *rest.first()?.first()?,
            parent: field(4)? as u32,
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)? as u32,
            start_ticks: field(22)?,
        })
    }

    /// Ended, and only not waited for by its parent.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

impl Rollup {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |name| kilobytes(bytes, name);
        let private_dirty = field("Private_Dirty:")? + field("Private_Hugetlb:").unwrap_or(0);
        Some(Self { pss: field("Pss:")?, private_dirty, swap: field("Swap:").unwrap_or(0) })
    }
}

/// Value of a line `name   123 kB`, in bytes.
pub(crate) fn kilobytes(bytes: &[u8], name: &str) -> Option<u64> {
    line(bytes, name).map(|value| value * 1024)
}

/// First number of the line that begins with this name.
pub(crate) fn line(bytes: &[u8], name: &str) -> Option<u64> {
    let rest = bytes.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name.as_bytes()))?;
    rest.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).and_then(number)
}

/// Whether a process handles a signal: the line `SigCgt` of its `status`.
pub(crate) fn handles(status: &[u8], signal: i32) -> bool {
    let text = String::from_utf8_lossy(status);
    let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

/// The whole text as a number, white space around it left out.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = b"77 (a) b (c) S 1 77 77 0 -1 4194560 1 0 0 0 5 7 0 0 20 0 3 0 8843 1 2 3";
        let expected = Stat {
            name: "a) b (c".into(),
            state: b'S',
            parent: 1,
            cpu_ticks: 12,
            threads: 3,
            start_ticks: 8843,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        let start = text.len() - b"8843 1 2 3".len();
        for cut in 0..start {
            assert_eq!(Stat::parse(&text[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        assert_eq!(
            Statm::parse(b"10 4 2 1 0 3 0\n", 4096),
            Some(Statm { size: 40960, resident: 16384, shared: 8192, data: 12288 })
        );
        assert_eq!(Statm::parse(b"0 0 0 0 0 0 0\n", 4096), None);
        assert_eq!(Statm::parse(b"", 4096), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = b"55e0-7ffd ---p 00000000 00:00 0  [rollup]\nRss:  900 kB\nPss:  700 kB\nPss_Dirty:  3 kB\nPrivate_Dirty:  600 kB\nSwap:  8 kB\nSwapPss: 1 kB\n";
        let expected = Rollup { pss: 700 << 10, private_dirty: 600 << 10, swap: 8 << 10 };
        assert_eq!(Rollup::parse(text), Some(expected));
        assert_eq!(Rollup::parse(b"Rss: 1 kB\n"), None);
    }

    #[test]
    fn limits_that_are_unlimited_are_none() {
        let text = b"Limit  Soft Limit  Hard Limit  Units\nMax data size   1000   unlimited   bytes\nMax address space  unlimited  unlimited  bytes\n";
        assert_eq!(line(text, "Max data size"), Some(1000));
        assert_eq!(line(text, "Max address space"), None);
    }

    #[test]
    fn a_handler_shows_in_the_status() {
        let status = b"Name:\tpython\nSigIgn:\t0000000000000200\nSigCgt:\t0000000180000202\n";
        assert!(handles(status, libc::SIGUSR1) && handles(status, libc::SIGINT));
        assert!(!handles(status, libc::SIGTERM) && !handles(b"", libc::SIGUSR1));
    }

    #[test]
    fn this_process_can_be_read() {
        let mut reader = Reader::new();
        let pid = std::process::id();
        assert!(reader.stat(pid).is_some_and(|stat| stat.threads >= 1 && !stat.ended()));
        assert!(Rollup::parse(reader.process(pid, "smaps_rollup").unwrap_or_default()).is_some());
        assert!(!reader.arguments(pid).is_empty());
        assert_eq!(reader.stat(u32::MAX), None);
    }
}
