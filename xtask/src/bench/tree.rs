//! Resident memory of a process and of everything below it, from `/proc`.

use std::fs;
use std::path::PathBuf;

/// Bytes in memory now: pages that processes share count once for each, as in their own figures. 0 where nothing runs.
pub(crate) fn resident(root: u32) -> u64 {
    let (mut all, mut next) = (vec![root], 0);
    while let Some(pid) = all.get(next) {
        // A number that is used anew while this looks must not lead in circles.
        let found: Vec<_> = children(*pid).into_iter().filter(|child| !all.contains(child)).collect();
        all.extend(found);
        next += 1;
    }
    all.into_iter().map(bytes).sum()
}

/// Every thread has its own children.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(process(pid).join("task")).into_iter().flatten().filter_map(Result::ok);
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(process(pid).join("status")).unwrap_or_default();
    let resident =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    resident.map_or(0, |kib: u64| kib * 1024)
}

fn process(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn children_count_and_what_has_ended_does_not() {
        let mut child = Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & wait"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let with_child = (0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            resident(child.id()) > bytes(child.id())
        });
        assert!(with_child, "{:?}", children(child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(resident(child.id()), 0);
    }
}
