//! Which processes belong to the run: the command, its descendants, and those that went another way (a parent that
//! ended before anybody looked), known by the mark in their environment.
//!
//! Costs nothing while no process is made anywhere: the kernel's last process id tells. Remembers the living only.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};

use caulk_core::ProcessRecord;
use caulk_core::wire::{Hello, Message, RUN_VARIABLE};

use crate::clock;
use crate::proc::{Reader, Stat};
use crate::process::{Looks, Process};
use crate::role::Roles;
use crate::signs::Kind;

/// Processes beyond this number that are neither main nor have an agent are counted only.
const MOST_RECORDS: u32 = 4096;

/// While a process is younger than this it may become another program, in nanoseconds.
const YOUTH_NS: u64 = 1_000_000_000;

/// Longest time for which a process runs before it is seen, in nanoseconds.
const LONGEST_UNSEEN_NS: u64 = 2_000_000_000;

/// A process that has ended is remembered for so long, in nanoseconds.
const MOURNING_NS: u64 = 1_000_000_000;

/// Environments of strangers read in one scan: a machine that makes more processes is watched less closely.
const MOST_STRANGERS: usize = 100;

/// Share of a core for sweeps: one part in so many; ...
const SWEEP_DUTY: u64 = 500;

/// ... and the least and the most between two of them, in nanoseconds: on a busy machine one may have seemed dear.
const SWEEP_NS: [u64; 2] = [1_000_000_000, 10_000_000_000];

/// Files that are kept open, one per process.
const MOST_FILES: usize = 256;

/// All of them.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) processes: BTreeMap<u32, Process>,
    /// Records that are new or have changed.
    pub(crate) changes: Vec<ProcessRecord>,
    /// Processes that have ended, of which nothing more is to be expected.
    pub(crate) gone: Vec<u32>,
    pub(crate) reader: Reader,
    roles: Roles,
    environment_mark: Vec<u8>,
    strangers: HashSet<u32>,
    last_pid: Vec<u8>,
    next_sweep_ns: u64,
    /// Something was made since the last sweep, or was left by it.
    unswept: bool,
    /// New since the last scan.
    added: Vec<u32>,
    seen: u32,
}

impl Tree {
    /// A tree without processes. Made before the command is started: what runs now is not of the run.
    pub(crate) fn new(mark: &str) -> Self {
        Self {
            processes: BTreeMap::new(),
            changes: Vec::new(),
            gone: Vec::new(),
            reader: Reader::new(),
            roles: Roles::new(0),
            environment_mark: format!("{RUN_VARIABLE}={mark}").into_bytes(),
            strangers: process_ids().collect(),
            last_pid: Vec::new(),
            next_sweep_ns: 0,
            unswept: false,
            added: Vec::new(),
            seen: 0,
        }
    }

    /// Adds the command itself.
    pub(crate) fn plant(&mut self, root: u32, start_ns: u64) {
        self.roles = Roles::new(root);
        self.processes.insert(root, Process::new(root, std::process::id()));
        self.seen = 1;
        self.refresh(root);
        if let Some(process) = self.processes.get_mut(&root) {
            process.record.first_ns = start_ns;
            process.record.last_ns = start_ns;
        }
        self.tell(root);
    }

    /// Process id of the main process.
    pub(crate) fn main(&self) -> u32 {
        self.roles.main()
    }

    /// Processes seen so far, the ended ones included.
    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }

    /// Processes that were counted without a record.
    pub(crate) fn unrecorded(&self) -> u32 {
        self.seen.saturating_sub(MOST_RECORDS)
    }

    /// Looks for new processes and returns them.
    pub(crate) fn scan(&mut self, now_ns: u64) -> Vec<u32> {
        self.bury(now_ns);
        self.look_again(now_ns);
        if self.anything_new() {
            self.walk(now_ns);
            self.unswept = true;
        }
        if self.unswept && now_ns >= self.next_sweep_ns {
            let before = clock::cpu_ns();
            self.unswept = self.sweep(now_ns);
            let cost = clock::cpu_ns().saturating_sub(before);
            self.next_sweep_ns = now_ns + (cost * SWEEP_DUTY).clamp(SWEEP_NS[0], SWEEP_NS[1]);
        }
        std::mem::take(&mut self.added)
    }

    fn walk(&mut self, now_ns: u64) {
        let mut queue: Vec<u32> = self.living().collect();
        while let Some(parent) = queue.pop() {
            for child in self.children(parent) {
                if !self.processes.contains_key(&child) && self.add(child, now_ns) {
                    queue.push(child);
                }
            }
        }
    }

    /// True if a process or thread has been made on this machine since the last question.
    fn anything_new(&mut self) -> bool {
        let load = self.reader.open("/proc/loadavg").unwrap_or_default();
        let last = load.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
        if !last.is_empty() && last == self.last_pid {
            return false;
        }
        self.last_pid = last.to_vec();
        true
    }

    /// Children of all threads of a process.
    pub(crate) fn children(&mut self, pid: u32) -> Vec<u32> {
        let mut children = Vec::new();
        for thread in numbers_in(&format!("/proc/{pid}/task")) {
            let list = self.reader.process(pid, &format!("task/{thread}/children")).unwrap_or_default();
            let words = list.split(u8::is_ascii_whitespace).filter_map(|word| std::str::from_utf8(word).ok());
            children.extend(words.filter_map(|word| word.parse::<u32>().ok()));
        }
        children
    }

    /// Looks at processes that are not known yet: those of the run carry its mark, or have a parent in the tree. True where
    /// some are still to be looked at.
    fn sweep(&mut self, now_ns: u64) -> bool {
        let present: HashSet<u32> = process_ids().collect();
        self.strangers.retain(|pid| present.contains(pid));
        let mut new: Vec<u32> = present
            .into_iter()
            .filter(|pid| !self.strangers.contains(pid) && !self.processes.contains_key(pid))
            .collect();
        let mut left = new.len() > MOST_STRANGERS;
        new.truncate(MOST_STRANGERS);
        for pid in new {
            let environment = self.reader.process(pid, "environ").unwrap_or_default();
            let marked = environment.split(|&byte| byte == 0).any(|entry| entry == self.environment_mark);
            let is_empty = environment.is_empty();
            let Some(stat) = self.reader.stat(pid) else { continue };
            let related = marked || self.processes.contains_key(&stat.parent);
            // In the middle of `exec` a process has no environment.
            let young = clock::of_start(stat.start_ticks) + LONGEST_UNSEEN_NS > now_ns;
            let undecided = !related && is_empty && young && !stat.ended();
            left |= undecided;
            if !(undecided || related && self.add(pid, now_ns)) {
                self.strangers.insert(pid);
            }
        }
        left
    }

    /// Adds a process that lives; false for one that does not.
    fn add(&mut self, pid: u32, now_ns: u64) -> bool {
        let Some(stat) = self.reader.stat(pid).filter(|stat| !stat.ended()) else {
            return false;
        };
        let mut process = Process::new(pid, stat.parent);
        // Between two looks; anything else is a matter of clocks.
        process.record.first_ns =
            clock::of_start(stat.start_ticks).clamp(now_ns.saturating_sub(LONGEST_UNSEEN_NS), now_ns);
        process.record.last_ns = now_ns;
        process.recorded = self.seen < MOST_RECORDS;
        self.seen += 1;
        self.processes.insert(pid, process);
        self.added.push(pid);
        self.refresh(pid);
        true
    }

    /// Looks at young processes again, and tells of those that have been seen twice.
    fn look_again(&mut self, now_ns: u64) {
        let young = |process: &Process| !process.told || now_ns < process.record.first_ns + YOUTH_NS;
        let pids: Vec<u32> = self.living().filter(|pid| self.processes.get(pid).is_some_and(young)).collect();
        for pid in pids {
            let changed = self.refresh(pid);
            if changed || self.processes.get(&pid).is_some_and(|process| !process.told) {
                self.tell(pid);
            }
        }
    }

    /// Process ids of those that have not ended.
    pub(crate) fn living(&self) -> impl Iterator<Item = u32> {
        let living = self.processes.values().filter(|process| process.ended_ns.is_none());
        living.map(|process| process.record.pid)
    }

    /// Takes in that a process bears another name than it did: it has become another program.
    pub(crate) fn renamed(&mut self, pid: u32) {
        if self.refresh(pid) {
            self.tell(pid);
        }
    }

    /// Reads name and command line anew; true if the record may have changed.
    fn refresh(&mut self, pid: u32) -> bool {
        let Some(stat) = self.reader.stat(pid) else {
            return false;
        };
        if stat.ended() {
            // Its name is all that is left of it.
            return self.processes.get_mut(&pid).is_some_and(|process| process.rename(&stat));
        }
        let arguments = self.reader.arguments(pid);
        let hash = hash(&arguments);
        let Some(process) = self.processes.get(&pid) else {
            return false;
        };
        if process.settled && process.hash == hash && process.record.name == stat.name {
            return false;
        }
        let parent = process.record.parent;
        let forked = self.processes.get(&parent).is_some_and(|parent| parent.hash == hash);
        let link = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let executable = link.as_ref().map_or_else(
            || arguments.first().cloned().unwrap_or_default(),
            |link| link.to_string_lossy().into_owned(),
        );
        let kind = Kind::of(&executable, &arguments);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.renew(&stat, hash, kind, forked);
        }
        self.roles.judge(pid, &mut self.processes);
        true
    }

    /// Takes in what an agent says about its process; a process that was not seen yet becomes known by it.
    pub(crate) fn hear(&mut self, pid: u32, message: &Message, now_ns: u64) {
        if !matches!(message, Message::Hello(_) | Message::Rank(_) | Message::Boundary(_)) {
            return;
        }
        if !self.processes.contains_key(&pid) && !self.add(pid, now_ns) {
            self.hear_of_the_dead(pid, message, now_ns);
            return;
        }
        if let Message::Hello(hello) = message {
            self.meet(pid, hello);
        }
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let before = process.signs;
        let greets = matches!(message, Message::Hello(_)) && !process.record.agent;
        process.note(message);
        if before == process.signs && !greets {
            return;
        }
        for changed in self.roles.judge(pid, &mut self.processes) {
            self.tell(changed);
        }
        self.tell(pid);
    }

    /// Takes in that an agent hung up: until then its process was there, whenever the last look was.
    pub(crate) fn hung_up(&mut self, pid: u32, now_ns: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.record.last_ns = process.record.last_ns.max(now_ns);
        }
    }

    /// The last look may have been before it became the program that speaks here; by now it may have ended.
    fn meet(&mut self, pid: u32, hello: &Hello) {
        if self.reader.stat(pid).is_some() {
            self.refresh(pid);
        } else if let Some(process) = self.processes.get_mut(&pid) {
            process.record.name = file_name(&hello.executable);
        }
    }

    /// A process that came and went between two looks, and yet said something.
    fn hear_of_the_dead(&mut self, pid: u32, message: &Message, now_ns: u64) {
        let Message::Hello(hello) = message else {
            return;
        };
        self.seen += 1;
        let mut process = Process::new(pid, hello.parent);
        (process.record.first_ns, process.record.last_ns) = (hello.time_ns.min(now_ns), now_ns);
        process.record.name = file_name(&hello.executable);
        process.note(message);
        self.processes.insert(pid, process);
        self.roles.judge(pid, &mut self.processes);
        self.end(pid, now_ns);
    }

    /// Takes in that a process has ended.
    pub(crate) fn end(&mut self, pid: u32, now_ns: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.ended_ns.get_or_insert(now_ns);
            process.looks = Looks::default();
        }
    }

    /// Forgets those that ended a while ago, after their last record.
    fn bury(&mut self, now_ns: u64) {
        let over = |process: &&Process| process.ended_ns.is_some_and(|ended| ended + MOURNING_NS <= now_ns);
        let pids: Vec<u32> = self.processes.values().filter(over).map(|process| process.record.pid).collect();
        for pid in pids {
            self.tell(pid);
            self.processes.remove(&pid);
            self.gone.push(pid);
        }
    }

    /// Last records of all, when the run is over.
    pub(crate) fn close(&mut self) {
        for pid in self.processes.keys().copied().collect::<Vec<_>>() {
            self.tell(pid);
        }
    }

    fn tell(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid).filter(|process| process.recorded) {
            process.told = true;
            self.changes.push(process.record.clone());
        }
    }

    /// Opens `statm` of a process, if there are not too many open.
    pub(crate) fn open_statm(&self, pid: u32) -> Option<File> {
        let open = self.processes.values().filter(|process| process.looks.has_file()).count();
        if open < MOST_FILES { File::open(format!("/proc/{pid}/statm")).ok() } else { None }
    }

    /// True if this is still the process that it was, and not a later one with its number.
    pub(crate) fn is_same(&self, pid: u32, stat: &Stat) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.start_ticks == stat.start_ticks)
    }
}

impl Process {
    /// True if that is another name than it had.
    fn rename(&mut self, stat: &Stat) -> bool {
        let news = self.record.name != stat.name;
        self.record.name.clone_from(&stat.name);
        news
    }

    fn renew(&mut self, stat: &Stat, hash: u64, kind: Kind, forked: bool) {
        self.rename(stat);
        self.start_ticks = stat.start_ticks;
        self.hash = hash;
        self.signs.kind = kind;
        self.signs.forked = forked;
    }

    fn note(&mut self, message: &Message) {
        match message {
            Message::Hello(hello) => {
                self.record.agent = true;
                self.recorded = true;
                self.signs.hear_hello(hello);
            }
            Message::Rank(said) => self.signs.rank = Some(said.rank),
            Message::Boundary(boundary) => self.signs.hear_boundary(boundary),
            _ => {}
        }
    }
}

fn file_name(executable: &str) -> String {
    executable.rsplit('/').next().unwrap_or_default().into()
}

fn hash(arguments: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    hasher.finish()
}

/// Process ids of the machine.
fn process_ids() -> impl Iterator<Item = u32> {
    numbers_in("/proc")
}

/// Entries of a folder that are numbers.
fn numbers_in(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
