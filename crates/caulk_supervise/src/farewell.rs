//! Processes of the run that live on when the command has ended.

use std::thread;
use std::time::Duration;

use caulk_core::LeftProcess;

use crate::clock;
use crate::tree::Tree;

/// They have so long to end of their own accord, in nanoseconds, and are looked at so often.
const FAREWELL_NS: u64 = 400_000_000;
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Helpers of Python's that end when the pipe from their parent closes.
const HELPERS: [&str; 2] = ["multiprocessing.resource_tracker", "multiprocessing.forkserver"];

/// Those that live on, after what ends with the command has had the time to.
pub(crate) fn left(tree: &mut Tree, command: u32, end_ns: u64) -> Vec<LeftProcess> {
    let known: Vec<u32> = tree.living().filter(|pid| *pid != command).collect();
    loop {
        let left: Vec<LeftProcess> = known.iter().filter_map(|pid| look_at(tree, *pid)).collect();
        if left.is_empty() || clock::now_ns() >= end_ns + FAREWELL_NS {
            return left;
        }
        thread::sleep(LOOK);
    }
}

fn look_at(tree: &mut Tree, pid: u32) -> Option<LeftProcess> {
    let stat = tree.reader.stat(pid).filter(|stat| !stat.ended())?;
    let same = tree.is_same(pid, &stat);
    let helper = tree.reader.arguments(pid).iter().any(|word| HELPERS.iter().any(|name| word.contains(name)));
    let rss_bytes = tree.processes.get(&pid)?.looks.resident();
    (same && !helper).then_some(LeftProcess { pid, name: stat.name, rss_bytes })
}
