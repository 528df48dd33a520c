//! What the kernel says of tasks that wait for memory, and whether it would kill the whole control group.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};

use crate::proc::number;

/// Between two looks, in nanoseconds.
const LOOK_NS: u64 = 1_000_000_000;

/// Pressure-stall information, of the control group where it has some, else of the machine.
#[derive(Debug)]
pub(crate) struct Pressure {
    file: Option<Utf8PathBuf>,
    value: Option<f64>,
    next_ns: u64,
}

impl Pressure {
    pub(crate) fn find(proc_root: &Utf8Path, group: Option<&Utf8Path>) -> Self {
        let of_group = group.map(|folder| folder.join("memory.pressure"));
        let files = of_group.into_iter().chain([proc_root.join("pressure/memory")]);
        let file = files.into_iter().find(|file| read(file).is_some());
        Self { file, value: None, next_ns: 0 }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.file.is_some()
    }

    /// Percent of the last ten seconds in which all tasks waited.
    pub(crate) fn look(&mut self, now_ns: u64) -> Option<f64> {
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + LOOK_NS;
            self.value = self.file.as_deref().and_then(read);
        }
        self.value
    }
}

fn read(file: &Utf8Path) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let full = text.lines().find_map(|line| line.strip_prefix("full avg10="))?;
    full.split_whitespace().next()?.parse().ok()
}

/// `memory.oom.group`: the kernel kills all processes of the group at once.
pub(crate) fn kills_together(group: Option<&Utf8Path>) -> bool {
    let text = group.and_then(|folder| fs::read(folder.join("memory.oom.group")).ok());
    text.and_then(|text| number(&text)) == Some(1)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_groups_own_pressure_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let text = |full: &str| format!("some avg10=1.00 avg60=0\nfull avg10={full} avg60=0.00 total=1\n");
        fs::create_dir_all(root.join("proc/pressure")).unwrap();
        fs::write(root.join("proc/pressure/memory"), text("3.50")).unwrap();
        let mut machine = Pressure::find(&root.join("proc"), Some(root));
        assert_eq!(machine.look(0), Some(3.5));
        fs::write(root.join("memory.pressure"), text("42.00")).unwrap();
        assert_eq!(Pressure::find(&root.join("proc"), Some(root)).look(0), Some(42.0));
        assert!(!Pressure::find(root, None).is_known());
    }

    #[test]
    fn a_group_that_dies_together_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        assert!(!kills_together(Some(root)) && !kills_together(None));
        fs::write(root.join("memory.oom.group"), "1\n").unwrap();
        assert!(kills_together(Some(root)));
    }
}
