//! Why no agent reports although Python runs: told from the outside, as far as the process shows it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use caulk_core::wire::{RUN_VARIABLE, SOCKET_VARIABLE};

use crate::launch::{INJECTED, PYTHON_PATH};
use crate::proc::Reader;
use crate::signs::Kind;
use crate::tree::Tree;

/// Python without an agent for so long is silent, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;

/// A process that was only just made may be about to become another program, in nanoseconds.
const YOUTH_NS: u64 = 1_500_000_000;

/// Oldest Python with an agent: 3.this.
const OLDEST_MINOR: u32 = 10;

/// Waits for the first agent.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Process id of the first Python seen, and when.
    python: Option<(u32, u64)>,
    reason: Option<Reason>,
    over: bool,
}

/// Why caulk is not inside, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reason {
    why: String,
    remedy: &'static str,
}

impl Reason {
    fn new(why: impl Into<String>, remedy: &'static str) -> Self {
        Self { why: why.into(), remedy }
    }
}

/// What a process shows of itself.
#[derive(Debug, Default)]
struct Outside<'a> {
    executable: &'a str,
    arguments: &'a [String],
    /// `NAME=value`; `None` where it does not show.
    environment: Option<&'a [String]>,
    /// Names of mapped files, one a line.
    maps: &'a str,
    /// It runs with other rights than caulk.
    is_elevated: bool,
}

impl Silence {
    /// An agent has said hello.
    pub(crate) fn broken(&mut self) {
        self.over = true;
    }

    /// Looks for Python and for reasons; the note, once it is due.
    pub(crate) fn look(&mut self, tree: &mut Tree, now_ns: u64) -> Option<String> {
        if self.over {
            return None;
        }
        let python = self.python.filter(|&(pid, _)| tree.processes.contains_key(&pid));
        let Some((pid, since_ns)) = python.or_else(|| first_python(tree).map(|pid| (pid, now_ns))) else {
            return self
                .python
                .filter(|&(_, since)| since + PATIENCE_NS <= now_ns)
                .and_then(|_| self.finish(now_ns));
        };
        if self.python.is_none_or(|(before, _)| before != pid) {
            (self.python, self.reason) = (Some((pid, since_ns)), None);
        }
        let waited_ns = now_ns - since_ns;
        if !(YOUTH_NS..PATIENCE_NS).contains(&waited_ns) {
            self.reason = reason(pid, &mut tree.reader).or(self.reason.take());
        }
        if waited_ns >= PATIENCE_NS { self.finish(now_ns) } else { None }
    }

    /// The note where the run is over; a run that was shorter than patience only if the reason is known.
    pub(crate) fn finish(&mut self, now_ns: u64) -> Option<String> {
        let (pid, since_ns) = self.python?;
        if std::mem::replace(&mut self.over, true) {
            return None;
        }
        let known = self.reason.take();
        if known.is_none() && now_ns < since_ns + PATIENCE_NS {
            return None;
        }
        let Reason { why, remedy } = known.unwrap_or_else(|| {
            Reason::new("the reason does not show from outside", "see whether a short program shows the same")
        });
        Some(format!(
            "Python (process {pid}) runs without caulk inside: {why}. It is watched from outside alone, so that no \
             container and no line can be named; {remedy}"
        ))
    }
}

/// The first Python in the tree that runs the user's program.
fn first_python(tree: &Tree) -> Option<u32> {
    let mut processes: Vec<_> = tree.processes.values().collect();
    processes.sort_by_key(|process| process.record.first_ns);
    processes.iter().find(|process| process.signs.kind == Kind::Python).map(|process| process.record.pid)
}

fn reason(pid: u32, reader: &mut Reader) -> Option<Reason> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let arguments = reader.arguments(pid);
    let environment = environment(pid, reader);
    let maps = text(reader.process(pid, "maps").unwrap_or_default());
    explain(&Outside {
        executable: &link.to_string_lossy(),
        arguments: &arguments,
        environment: environment.as_deref(),
        maps: &maps,
        is_elevated: is_elevated(pid, &link, reader),
    })
}

/// Does it run as somebody else, or from a file that gives it rights of its own? Then the system keeps out what is
/// preloaded, and caulk's socket is closed to it (ld.so(8), secure-execution mode).
fn is_elevated(pid: u32, executable: &Path, reader: &mut Reader) -> bool {
    const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
    let rights = std::fs::metadata(executable).is_ok_and(|data| data.mode() & SET_ID != 0);
    let status = text(reader.process(pid, "status").unwrap_or_default());
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let own = rustix::process::geteuid().as_raw().to_string();
    rights || users.is_some_and(|users| users.split_whitespace().any(|user| user != own))
}

/// Variables of a process. A kernel that does not show them shows an empty file, as `env -i` makes it: this process's
/// own tells the one from the other.
fn environment(pid: u32, reader: &mut Reader) -> Option<Vec<String>> {
    let mut variables = |process: &str| -> Option<Vec<String>> {
        let bytes = reader.open(format!("/proc/{process}/environ")).ok()?;
        Some(bytes.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()).map(text).collect())
    };
    let shown = variables(&pid.to_string())?;
    let shows = !shown.is_empty() || variables("self").is_some_and(|own| !own.is_empty());
    shows.then_some(shown)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first reason that applies.
fn explain(outside: &Outside<'_>) -> Option<Reason> {
    if let Some((minor, build)) = version(outside) {
        if minor < OLDEST_MINOR {
            let why = format!("it is Python 3.{minor}, and caulk needs 3.{OLDEST_MINOR} or later");
            return Some(Reason::new(why, "run the program with a later Python"));
        }
        // The suffix of the ABI, and Debian's name.
        if build.starts_with('t') || build.starts_with("-nogil") {
            let why = "this build of Python runs without a global interpreter lock (free-threaded)";
            return Some(Reason::new(why, "run the program with the ordinary build"));
        }
    }
    if let Some(option) = switched_off(outside.arguments) {
        let effect = if option == 'S' { "does not import `site`" } else { "ignores PYTHONPATH" };
        let why = format!("with the option -{option} it {effect}, by which caulk gets in");
        return Some(Reason::new(why, "leave the option out under caulk"));
    }
    if outside.is_elevated {
        let why =
            "it runs as another user or with rights of its own (setuid, setgid), where nothing is let in";
        return Some(Reason::new(why, "start it as the user who runs caulk"));
    }
    outside.environment.and_then(environment_reason).or_else(|| library_reason(outside))
}

/// Option by which Python was told not to let anything in: those before the program, alone or together.
fn switched_off(arguments: &[String]) -> Option<char> {
    let mut arguments = arguments.iter().skip(1);
    while let Some(argument) = arguments.next() {
        if let Some(long) = argument.strip_prefix("--") {
            // Of the long options one takes a value of its own.
            if long == "check-hash-based-pycs" {
                arguments.next();
            }
            continue;
        }
        let options = argument.strip_prefix('-').filter(|options| !options.is_empty())?;
        for (place, option) in options.char_indices() {
            match option {
                'I' | 'E' | 'S' => return Some(option),
                // The program follows.
                'c' | 'm' => return None,
                'W' | 'X' => {
                    if place + 1 == options.len() {
                        arguments.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

fn environment_reason(environment: &[String]) -> Option<Reason> {
    let value = |name: &str| environment.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
    if value(SOCKET_VARIABLE).is_none() {
        let what = if value(RUN_VARIABLE).is_none() { "environment" } else { "variables" };
        let why =
            format!("caulk's {what} did not reach it (`env -i`, `sudo`, `subprocess(env=...)` and the like)");
        return Some(Reason::new(why, "pass on PYTHONPATH and the variables that begin with CAULK_"));
    }
    let injected = |path: &str| path.split(':').any(|folder| folder.ends_with(INJECTED));
    if !value(PYTHON_PATH).is_some_and(injected) {
        let why = "PYTHONPATH, by which caulk gets in, was replaced on the way";
        return Some(Reason::new(why, "add to it instead, as in `PYTHONPATH=/yours:$PYTHONPATH`"));
    }
    None
}

fn library_reason(outside: &Outside<'_>) -> Option<Reason> {
    let file = outside.executable.rsplit('/').next().unwrap_or_default();
    if file.starts_with("pypy") {
        return Some(Reason::new("it is PyPy, and caulk needs CPython", "run the program with CPython"));
    }
    if outside.maps.is_empty() {
        return None;
    }
    let another = "run the program with a Python that uses glibc, as python.org, conda and Debian have it";
    if outside.maps.contains("/ld-musl-") {
        return Some(Reason::new("it uses the musl C library, and caulk needs glibc", another));
    }
    let dynamic = ["/ld-linux", "/ld-2", "/libc.so", "/libc-2", "/ld64"];
    if !dynamic.iter().any(|name| outside.maps.contains(name)) {
        return Some(Reason::new("it is statically linked and cannot load extensions", another));
    }
    None
}

/// Minor version in the executable's name, or in that of its library, and what follows there.
fn version<'a>(outside: &Outside<'a>) -> Option<(u32, &'a str)> {
    let after = |text: &'a str, name: &str| {
        let rest = text.split(name).nth(1)?;
        let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        Some((rest[..end].parse().ok()?, &rest[end..]))
    };
    let file = outside.executable.rsplit('/').next().unwrap_or_default();
    after(file, "python3.").or_else(|| after(outside.maps, "/libpython3."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";

    fn check(executable: &str, line: &str, environment: &[&str], maps: &str, expected: &str) {
        let arguments: Vec<String> = line.split(' ').map(String::from).collect();
        let environment: Vec<String> = environment.iter().copied().map(String::from).collect();
        let outside = Outside {
            executable,
            arguments: &arguments,
            environment: Some(&environment),
            maps,
            is_elevated: false,
        };
        let text = explain(&outside).map(|reason| reason.why).unwrap_or_default();
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{line}: {text}");
    }

    #[test]
    fn options_before_the_program_count() {
        let whole = ["CAULK_SOCKET=/s", "CAULK_RUN=1", "PYTHONPATH=/p/caulk/_inject:/a"];
        let said = |line, expected| check("/usr/bin/python3.11", line, &whole, MAPS, expected);
        said("python train.py -I", "");
        said("python -m train -S", "");
        said("python -I train.py", "-I");
        said("python -sE train.py", "-E");
        said("python -u -X dev -S train.py", "-S");
        said("python -W error -Xdev -c pass -I", "");
        said("python -WI -c pass", "");
        said("python --check-hash-based-pycs default -I x.py", "-I");
        said("python", "");
        said("python -", "");
    }

    #[test]
    fn a_changed_environment_is_named() {
        let said = |environment: &[&str], expected| {
            check("/usr/bin/python3.11", "python x.py", environment, MAPS, expected);
        };
        said(&["HOME=/root"], "environment did not reach it");
        said(&[], "environment did not reach it");
        said(&["CAULK_RUN=1"], "variables did not reach it");
        said(&["CAULK_SOCKET=/s", "PYTHONPATH=/a"], "was replaced on the way");
        said(&["CAULK_SOCKET=/s"], "was replaced on the way");
    }

    #[test]
    fn interpreters_without_an_agent_are_named() {
        let whole = ["CAULK_SOCKET=/s", "PYTHONPATH=/p/caulk/_inject"];
        let said = |executable, maps, expected| check(executable, "python x.py", &whole, maps, expected);
        said("/usr/bin/python3.9", MAPS, "Python 3.9");
        said("/usr/bin/python3", "/usr/lib/libpython3.8.so.1.0\n/lib/libc.so.6", "Python 3.8");
        said("/usr/bin/python3.12", "/lib/ld-musl-x86_64.so.1", "musl");
        said("/usr/bin/python3.12", "/usr/bin/python3.12", "statically");
        said("/usr/bin/pypy3.10", MAPS, "PyPy");
        said("/usr/bin/python3.13", MAPS, "");
        said("/opt/bin/python3.13t", MAPS, "free-threaded");
        said("/usr/bin/python3.13-nogil", MAPS, "free-threaded");
        said("/opt/bin/python3", "/opt/lib/libpython3.14t.so.1.0\n/lib/libc.so.6", "free-threaded");
        said("/opt/bin/python3", "/opt/lib/libpython3.14.so.1.0\n/lib/libc.so.6", "");
    }

    #[test]
    fn rights_of_its_own_are_named() {
        let arguments = ["python", "x.py"].map(String::from);
        let environment = [String::from("HOME=/")];
        let outside = Outside {
            executable: "/usr/bin/python3.13",
            arguments: &arguments,
            environment: Some(&environment),
            maps: MAPS,
            is_elevated: true,
        };
        assert!(explain(&outside).is_some_and(|reason| reason.why.contains("setuid")));
    }
}
