//! Runs a program under the sampler and reads what it left.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use caulk_wire::heap::{
    ARENA_BYTES, HEAP_VARIABLE, InUse, LINE_BYTES, LINES, MEMORY_BYTES, OTHERS, SLOT_BYTES, Slot,
    TURNED_AWAY, Total, header, stack, taken_over,
};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// What a program left in one slot.
pub(crate) struct Profile(Vec<u8>);

/// What all processes of a program left.
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) profiles: Vec<Profile>,
    /// Processes that found no slot.
    pub(crate) turned_away: u32,
    /// Samples of processes whose slots others have taken over.
    pub(crate) samples_taken_over: u64,
}

/// The library that was built for these tests.
pub(crate) fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("this test is a file");
    let folders = exe.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libcaulk_preload.so")).find(|library| library.is_file());
    found.expect("cargo builds the library before its tests")
}

/// Runs it with the sampler preloaded.
pub(crate) fn run(command: &mut Command) -> Run {
    run_preloaded(library().to_str().expect("a path of text"), command)
}

/// Runs it with these libraries preloaded.
pub(crate) fn run_preloaded(libraries: &str, command: &mut Command) -> Run {
    let memory = memfd_create("heap-test", MemfdFlags::empty()).expect("memory");
    ftruncate(&memory, MEMORY_BYTES as u64).expect("memory");
    let memory = File::from(memory);
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    let output = command.env("LD_PRELOAD", libraries).env(HEAP_VARIABLE, path).output().expect("it starts");
    let read = |index: usize| {
        let mut bytes = vec![0; SLOT_BYTES];
        memory.read_exact_at(&mut bytes, (index * SLOT_BYTES) as u64).expect("a slot");
        Slot::new(&bytes).is_some().then_some(Profile(bytes))
    };
    let mut turned_away = [0; 4];
    memory.read_exact_at(&mut turned_away, TURNED_AWAY as u64).expect("the end");
    let mut samples = [0; 8];
    memory.read_exact_at(&mut samples, taken_over(0) as u64).expect("the end");
    let text = [output.stdout, output.stderr].concat();
    Run {
        status: output.status,
        output: String::from_utf8_lossy(&text).into_owned(),
        profiles: (0..4).filter_map(read).collect(),
        turned_away: u32::from_ne_bytes(turned_away),
        samples_taken_over: u64::from_ne_bytes(samples),
    }
}

impl Run {
    /// The first process's profile, of a program that ended well.
    #[track_caller]
    pub(crate) fn first(&self) -> &Profile {
        assert!(self.status.success(), "{:?}\n{}", self.status, self.output);
        self.profiles.first().expect("it was sampled")
    }
}

impl Profile {
    pub(crate) fn slot(&self) -> Slot<'_> {
        Slot::new(&self.0).expect("it was one before")
    }

    pub(crate) fn count(&self, at: usize) -> u64 {
        self.slot().count(at)
    }

    /// Estimated live bytes at the end, over all stacks.
    pub(crate) fn live(&self) -> u64 {
        self.slot().totals().iter().map(|total| total.bytes).sum()
    }

    /// What malloc had handed out at the end.
    pub(crate) fn in_use(&self) -> InUse {
        let lines = self.slot().field(header::LINES) as usize;
        InUse::of_lines(&self.0[LINES..][..lines * LINE_BYTES])
    }

    /// Estimated live bytes at the end of stacks that found no place.
    pub(crate) fn of_others(&self) -> u64 {
        let slot = self.slot();
        let others = slot.stack(OTHERS).expect("it is there from the beginning");
        assert_eq!((others.flags, others.frames.len()), (stack::OTHERS, 0));
        slot.totals()[OTHERS as usize].bytes
    }

    /// No sample was lost, and no record went stale.
    #[track_caller]
    pub(crate) fn is_sound(&self) {
        assert_eq!((self.count(header::DROPPED), self.count(header::STALE)), (0, 0));
        assert!(self.count(header::ARENA_USED) < ARENA_BYTES as u64);
    }

    /// Bytes at the last snapshot by the innermost frame that is in a file: function, line, total.
    pub(crate) fn lines(&self, file: &Path) -> Vec<(String, u32, Total)> {
        let slot = self.slot();
        let minor = slot.field(header::PYTHON);
        let (_, totals) = slot.snapshot().expect("a snapshot was made");
        let mut lines: Vec<(String, u32, Total)> = Vec::new();
        for (id, total) in (0..).zip(totals) {
            let stack = slot.stack(id).expect("every total has a stack");
            let frames =
                stack.frames.iter().map(|frame| (slot.code(frame.code).expect("known"), frame.offset));
            let mut own = frames.filter(|(code, _)| Path::new(&code.file) == file);
            let Some((code, offset)) = own.next() else { continue };
            let line = code.line(minor, offset);
            match lines.iter_mut().find(|(name, known, _)| *name == code.name && *known == line) {
                Some((.., sum)) => {
                    sum.bytes += total.bytes;
                    sum.blocks += total.blocks;
                    sum.variance += total.variance;
                }
                None => lines.push((code.name, line, total)),
            }
        }
        lines
    }
}

/// A folder with one file in it.
pub(crate) fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file");
    (folder, path)
}
