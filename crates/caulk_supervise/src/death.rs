//! How the command ended, and for SIGKILL by whom: told from what the kernel counted and where memory stood.
//!
//! Arithmetic on what was read before and after; reads nothing itself.

use caulk_core::{Bytes, Death, Kill};

/// How the command ended, as `waitid` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Exit code.
    Code(i32),
    /// Signal.
    Signal(i32),
    /// Somebody else has waited for it.
    Unseen,
}

/// A count of OOM kills when the run began and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kills {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// How full something was in the last moments, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filled {
    /// The most that was seen in use.
    pub(crate) seen: u64,
    /// What the next look would have seen, had it gone on so.
    pub(crate) expected: u64,
    pub(crate) limit: u64,
}

/// Where memory stood in the last moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Level {
    /// Of the control group with a limit.
    pub(crate) cgroup: Option<Filled>,
    /// Of the machine.
    pub(crate) machine: Option<Filled>,
}

/// What there is to tell by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Kills counted by the control group.
    pub(crate) cgroup: Option<Kills>,
    /// Kills counted by the machine.
    pub(crate) machine: Option<Kills>,
    /// Where memory stood.
    pub(crate) level: Level,
}

/// From this share of a limit on, memory counts as standing at it.
const AT_LIMIT: f64 = 0.95;

impl Ending {
    /// Exit code to pass on.
    pub(crate) fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => crate::EXIT_SIGNAL_BASE + signal,
            Self::Unseen => crate::EXIT_FAILED,
        }
    }

    /// Killed, or a shell that says so of its child.
    fn killed(self) -> bool {
        matches!(self, Self::Signal(libc::SIGKILL))
            || self == Self::Code(crate::EXIT_SIGNAL_BASE + libc::SIGKILL)
    }

    fn text(self) -> String {
        match self {
            Self::Code(code) if code > crate::EXIT_SIGNAL_BASE => {
                match name(code - crate::EXIT_SIGNAL_BASE) {
                    Some(name) => format!("exited with code {code}, as a shell does for {name}"),
                    None => format!("exited with code {code}"),
                }
            }
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => match name(signal) {
                Some(name) => format!("ended by signal {signal} ({name})"),
                None => format!("ended by signal {signal}"),
            },
            Self::Unseen => "ended unseen: something else waited for it, its exit code is not known".into(),
        }
    }
}

impl Kills {
    fn news(self) -> u64 {
        self.after.saturating_sub(self.before)
    }
}

impl Filled {
    fn share(self) -> f64 {
        self.expected as f64 / self.limit.max(1) as f64
    }
}

impl Level {
    /// The fuller of the two, with its name.
    fn fullest(self) -> Option<(Filled, &'static str)> {
        let cgroup = self.cgroup.map(|filled| (filled, "the memory limit of its control group"));
        let machine = self.machine.map(|filled| (filled, "the machine's memory"));
        cgroup.into_iter().chain(machine).max_by(|a, b| a.0.share().total_cmp(&b.0.share()))
    }
}

/// The death of the command.
pub(crate) fn classify(ending: Ending, evidence: &Evidence) -> Death {
    let (code, signal) = match ending {
        Ending::Code(code) => (Some(code), None),
        Ending::Signal(signal) => (None, Some(signal)),
        Ending::Unseen => (None, None),
    };
    let (kill, reason) = killer(ending, evidence);
    let text = if reason.is_empty() { ending.text() } else { format!("{}: {reason}", ending.text()) };
    Death { code, signal, kill, text, stopped: false }
}

fn killer(ending: Ending, evidence: &Evidence) -> (Option<Kill>, String) {
    let counted = evidence.cgroup.map(Kills::news);
    let machine = evidence.machine.map(Kills::news);
    let fullest = evidence.level.fullest();
    let stood = fullest.map_or_else(String::new, |(filled, name)| {
        format!("; last seen: {} of {}, {name}", Bytes(filled.seen), Bytes(filled.limit))
    });
    let oom =
        |count, of: &str| format!("the kernel killed {} of {of} for want of memory{stood}", processes(count));
    let kill = match (counted, machine) {
        (Some(count @ 1..), _) if ending.killed() => (Kill::Oom, oom(count, "its control group")),
        (Some(count @ 1..), _) => (Kill::Oom, format!("while it ran, {}", oom(count, "its control group"))),
        _ if !ending.killed() => return (None, String::new()),
        // Without a count of the group's own, one of the machine's says it as well: kills are rare.
        (None, Some(count @ 1..)) => (Kill::Oom, oom(count, "this machine")),
        (None, None) => uncounted(fullest, &stood),
        _ if fullest.is_some_and(|(filled, _)| filled.share() >= AT_LIMIT) => {
            let watchers =
                "something else that watches memory may have (systemd-oomd, earlyoom, a batch system)";
            (
                Kill::ProbablyOom,
                format!("memory was at its limit; the kernel counted no OOM kill, {watchers}{stood}"),
            )
        }
        _ => (Kill::NotOom, format!("by a person or a program, for the kernel counted no OOM kill{stood}")),
    };
    (Some(kill.0), kill.1)
}

/// Where no count can be read, the level is all there is to tell by.
fn uncounted(fullest: Option<(Filled, &str)>, stood: &str) -> (Kill, String) {
    let unread = "no count of OOM kills can be read here";
    match fullest {
        Some((filled, _)) if filled.share() >= AT_LIMIT => {
            (Kill::ProbablyOom, format!("memory was at its limit, and {unread}{stood}"))
        }
        Some(_) => (Kill::NotOom, format!("probably by a person or a program, though {unread}{stood}")),
        None => (Kill::Unknown, format!("{unread}, nor a memory limit")),
    }
}

fn processes(count: u64) -> String {
    if count == 1 { "a process".into() } else { format!("{count} processes") }
}

/// Name of a signal that ends processes.
pub(crate) fn name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: Ending = Ending::Signal(libc::SIGKILL);
    const NONE: Option<Kills> = Some(Kills { before: 5, after: 5 });
    const ONE: Option<Kills> = Some(Kills { before: 5, after: 6 });
    const LOW: Level = Level { cgroup: Some(filled(100, 1000)), machine: Some(filled(100, 4000)) };
    const FULL: Level = Level { cgroup: Some(filled(960, 1000)), machine: Some(filled(960, 4000)) };

    const fn filled(seen: u64, limit: u64) -> Filled {
        Filled { seen, expected: seen, limit }
    }

    fn check(
        ending: Ending,
        cgroup: Option<Kills>,
        machine: Option<Kills>,
        level: Level,
        kill: Option<Kill>,
    ) {
        let death = classify(ending, &Evidence { cgroup, machine, level });
        assert_eq!(death.kill, kill, "{}", death.text);
    }

    #[test]
    fn a_counted_kill_is_an_oom_kill() {
        check(KILLED, ONE, NONE, LOW, Some(Kill::Oom));
        check(KILLED, None, ONE, LOW, Some(Kill::Oom));
        check(Ending::Code(137), ONE, None, Level::default(), Some(Kill::Oom));
    }

    #[test]
    fn elsewhere_on_the_machine_is_not_here() {
        check(KILLED, NONE, ONE, LOW, Some(Kill::NotOom));
    }

    #[test]
    fn at_the_limit_without_a_count_is_probable() {
        check(KILLED, NONE, NONE, FULL, Some(Kill::ProbablyOom));
        check(KILLED, None, None, FULL, Some(Kill::ProbablyOom));
        let machine = Level { cgroup: None, machine: Some(filled(3900, 4000)) };
        check(KILLED, None, None, machine, Some(Kill::ProbablyOom));
    }

    #[test]
    fn far_from_it_somebody_killed() {
        check(KILLED, NONE, NONE, LOW, Some(Kill::NotOom));
        check(KILLED, None, None, LOW, Some(Kill::NotOom));
        check(KILLED, None, None, Level::default(), Some(Kill::Unknown));
    }

    #[test]
    fn a_child_killed_is_told_whatever_the_command_made_of_it() {
        check(Ending::Code(1), ONE, None, LOW, Some(Kill::Oom));
        check(Ending::Code(0), ONE, None, LOW, Some(Kill::Oom));
        check(Ending::Signal(libc::SIGABRT), ONE, None, LOW, Some(Kill::Oom));
    }

    #[test]
    fn other_ends_have_no_killer() {
        check(Ending::Code(0), NONE, ONE, FULL, None);
        check(Ending::Signal(libc::SIGSEGV), None, None, FULL, None);
        check(Ending::Unseen, None, None, FULL, None);
    }

    #[test]
    fn the_text_names_the_end_and_the_reason() {
        let death = classify(KILLED, &Evidence { cgroup: ONE, machine: NONE, level: FULL });
        let expected = "ended by signal 9 (SIGKILL): the kernel killed a process of its control group for want of \
                        memory; last seen: 960 B of 1000 B, the memory limit of its control group";
        assert_eq!(death.text, expected);
        assert_eq!((death.code, death.signal), (None, Some(9)));
        assert_eq!(classify(Ending::Code(3), &Evidence::default()).text, "exited with code 3");
    }

    #[test]
    fn exit_codes_are_passed_on() {
        assert_eq!(Ending::Code(7).exit_code(), 7);
        assert_eq!(Ending::Signal(15).exit_code(), 143);
    }
}
