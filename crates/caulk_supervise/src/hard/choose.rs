//! Which means works here.

use super::group::Parent;
use super::scope::Manager;
use super::{Found, HardLimit, Means};
use crate::Options;

/// Finds out whether a limit of so many bytes can be set by one means, or why not.
type Attempt = fn(&Options, u64) -> Result<Found, String>;

const TRIES: [(Means, Attempt); 4] = [
    (Means::Cgroup, |options, bytes| {
        Parent::version_2(&options.proc_root, &options.cgroup_root, bytes).map(Found::Group)
    }),
    (Means::Systemd, |_, bytes| Manager::find(bytes).map(Found::Scope)),
    (Means::Cgroup, |options, bytes| {
        Parent::version_1(&options.proc_root, &options.cgroup_root, bytes).map(Found::Group)
    }),
    (Means::Data, |_, _| Ok(Found::Data)),
];

/// None of the means that were asked for works here.
#[derive(Debug, thiserror::Error)]
#[error("no hard limit can be set here: {}", .0.join("; "))]
pub struct NoHardLimit(Vec<String>);

impl HardLimit {
    /// The first means that works here, or the one that is wanted. What is tried is undone.
    ///
    /// # Errors
    /// If the one that is wanted does not work.
    pub fn choose(options: &Options, bytes: u64, wanted: Option<Means>) -> Result<Self, NoHardLimit> {
        let mut refused = Vec::new();
        for (_, attempt) in TRIES.iter().filter(|(means, _)| wanted.is_none_or(|wanted| wanted == *means)) {
            match attempt(options, bytes) {
                Ok(found) => return Ok(Self { bytes, found, refused }),
                Err(reason) => refused.push(reason),
            }
        }
        Err(NoHardLimit(refused))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;
    use crate::cgroup::tests::Machine;

    /// Why no control group can be made on a machine with these files.
    fn check(table: &str, files: &[(&str, &str)], reasons: [&str; 2]) {
        let machine = Machine::with(table, files);
        let mut options = Options::new(Vec::new());
        (options.proc_root, options.cgroup_root) = (machine.proc(), machine.groups());
        let error = HardLimit::choose(&options, 1 << 30, Some(Means::Cgroup)).unwrap_err();
        for (said, reason) in error.0.iter().zip(reasons) {
            assert!(said.contains(reason), "{said}");
        }
    }

    #[test]
    fn where_no_group_can_be_made_the_reason_is_said() {
        let none = ["no control groups of version 2", "no control groups of version 1"];
        check("", &[], none);
        check("4:memory:/job\n0::/job\n", &[], none);
        let other = [("job/cgroup.procs", ""), ("job/cgroup.controllers", "cpu pids\n")];
        check("0::/job\n", &other, ["limits no memory", none[1]]);
        let plain = [
            ("cgroup.procs", ""),
            ("cgroup.controllers", "cpu memory\n"),
            ("cgroup.subtree_control", "memory\n"),
        ];
        check("0::/elsewhere\n", &plain, ["no control group can be made in", none[1]]);
    }

    #[test]
    fn a_limit_for_each_process_can_be_set_anywhere() {
        let limit = HardLimit::choose(&Options::new(Vec::new()), 1 << 30, Some(Means::Data)).unwrap();
        let command = ["python".into(), "train.py".into()];
        assert_eq!(limit.prepare().unwrap().words(&command), command);
        let lines: Vec<String> = limit.lines().collect();
        assert!(matches!(&lines[..], [line] if line.contains("RLIMIT_DATA")), "{lines:?}");
    }

    #[test]
    fn a_scope_is_made_by_the_manager_of_the_user() {
        let words = |manager: Manager| {
            let words = manager.words(4096, &["python".into(), "-V".into()]);
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        let rest = "--scope --quiet --collect --property=MemoryMax=4096 -- python -V";
        assert_eq!(words(Manager::System), format!("systemd-run {rest}"));
        assert_eq!(words(Manager::User), format!("systemd-run --user {rest}"));
    }
}
