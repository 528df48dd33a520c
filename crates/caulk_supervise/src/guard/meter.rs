//! How much memory the tree takes, from `statm` alone: cheap enough for two hundred readings a second.
//!
//! What counts is what only ends with the processes: anonymous pages and shared memory. Pages of files the kernel takes
//! back by itself. A forked child shares its parent's pages until it writes to them: of it, what it has of its own counts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;

use caulk_guard::{GuardLimit, Room};

use crate::proc::{Reader, kilobytes, line};
use crate::process::Private;
use crate::tree::Tree;

/// Between two looks at the shared memory of the main process, and at a process's own limits, in nanoseconds.
const RARELY_NS: u64 = 1_000_000_000;

/// Lines in `limits`: of data, of address space.
pub(super) const OWN_LIMITS: [&str; 2] = ["Max data size", "Max address space"];

/// Reads the rooms.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    page: u64,
    seen: BTreeMap<u32, Seen>,
    shared: u64,
    next_shared_ns: u64,
}

/// What is known of a process.
#[derive(Debug)]
struct Seen {
    statm: Option<File>,
    forked: bool,
    /// Anonymous bytes at the first look.
    first: u64,
    data_limit: Option<u64>,
    address_limit: Option<u64>,
    next_limits_ns: u64,
}

/// One line of `statm`, in bytes.
#[derive(Debug, Clone, Copy)]
struct Line {
    size: u64,
    anonymous: u64,
    data: u64,
}

/// What one look gave.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// Of the whole tree, in bytes.
    pub(crate) tree: u64,
    /// Processes near limits of their own.
    pub(crate) rooms: Vec<Room>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self { page: rustix::param::page_size() as u64, ..Self::default() }
    }

    /// One look at every process.
    pub(crate) fn look(&mut self, tree: &mut Tree, now_ns: u64) -> Levels {
        let mut levels = Levels::default();
        let pids: Vec<u32> = tree.living().collect();
        self.seen.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            let Some(line) = self.read(tree, pid) else { continue };
            let private = tree.processes.get(&pid).and_then(|process| process.looks.private());
            if let Some(seen) = self.seen.get_mut(&pid) {
                seen.look_at_limits(&mut tree.reader, pid, now_ns);
                levels.tree += seen.own(line.anonymous, private);
                levels.rooms.extend(seen.rooms(line));
            }
        }
        levels.tree += self.shared(tree, now_ns);
        levels
    }

    fn read(&mut self, tree: &mut Tree, pid: u32) -> Option<Line> {
        let known = self.seen.get(&pid).and_then(|seen| seen.statm.as_ref());
        let bytes = match known {
            Some(file) => tree.reader.read(file),
            None => tree.reader.process(pid, "statm"),
        };
        let line = Line::parse(bytes.ok()?, self.page)?;
        if let Entry::Vacant(entry) = self.seen.entry(pid) {
            let forked = tree.processes.get(&pid).is_some_and(|process| process.signs.forked);
            entry.insert(Seen::meet(pid, forked, line.anonymous));
        }
        Some(line)
    }

    fn shared(&mut self, tree: &mut Tree, now_ns: u64) -> u64 {
        if now_ns >= self.next_shared_ns {
            self.next_shared_ns = now_ns + RARELY_NS;
            let main = tree.main();
            let status = tree.reader.process(main, "status").unwrap_or_default();
            self.shared = kilobytes(status, "RssShmem:").unwrap_or(0);
        }
        self.shared
    }
}

impl Seen {
    fn meet(pid: u32, forked: bool, first: u64) -> Self {
        let statm = File::open(format!("/proc/{pid}/statm")).ok();
        Self { statm, forked, first, data_limit: None, address_limit: None, next_limits_ns: 0 }
    }

    /// A program may set limits of its own, and `prlimit` does before it becomes the program.
    fn look_at_limits(&mut self, reader: &mut Reader, pid: u32, now_ns: u64) {
        if now_ns >= self.next_limits_ns {
            self.next_limits_ns = now_ns + RARELY_NS;
            let limits = reader.process(pid, "limits").unwrap_or_default();
            // "unlimited" is no number.
            [self.data_limit, self.address_limit] = OWN_LIMITS.map(|name| line(limits, name));
        }
    }

    /// Anonymous bytes that count as this process's.
    fn own(&self, anonymous: u64, private: Option<Private>) -> u64 {
        match private {
            _ if !self.forked => anonymous,
            Some(private) => private.dirty + anonymous.saturating_sub(private.anonymous),
            None => anonymous.saturating_sub(self.first),
        }
    }

    fn rooms(&self, line: Line) -> impl Iterator<Item = Room> {
        let data = self.data_limit.map(|most| Room { limit: GuardLimit::Data, used: line.data, most });
        let address =
            self.address_limit.map(|most| Room { limit: GuardLimit::AddressSpace, used: line.size, most });
        data.into_iter().chain(address)
    }
}

impl Line {
    /// `size resident shared text lib data dt`, in pages.
    fn parse(bytes: &[u8], page: u64) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [size, resident, shared, _, _, data, ..] = numbers[..] else { return None };
        let anonymous = resident.saturating_sub(shared) * page;
        (size > 0).then_some(Self { size: size * page, anonymous, data: data * page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_measured() {
        let mut tree = Tree::new("mark");
        tree.plant(std::process::id(), 1);
        let mut meter = Meter::new();
        let before = meter.look(&mut tree, 1).tree;
        let block = vec![1_u8; 64 << 20];
        let after = meter.look(&mut tree, 2).tree;
        assert!(after >= before + (60 << 20), "{before} {after} {}", block.len());
    }

    #[test]
    fn of_a_forked_child_its_own_counts() {
        let seen = |forked| Seen { statm: None, ..Seen::meet(0, forked, 400) };
        let private = Private { dirty: 100, anonymous: 450 };
        assert_eq!(seen(false).own(500, Some(private)), 500);
        assert_eq!(seen(true).own(500, None), 100);
        assert_eq!(seen(true).own(500, Some(private)), 150);
    }
}
