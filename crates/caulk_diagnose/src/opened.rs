//! Which threads, open files and segments have become more: what they run, what they are, and where they are made.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::wire::{CodePlace, Kin, Opened};
use caulk_core::{Evidence, KindCount, Series, Site, SiteRole};
use caulk_python::Call;

use crate::files::{Files, Source};
use crate::native;
use crate::process::Process;

/// Kinds that are told.
const KINDS: usize = 3;
/// What begins threads.
const BEGINNERS: [&str; 2] = ["Thread", "Timer"];
/// Files of libraries whose threads wait for work, and what is called to have them.
const POOLS: [(&str, &[&str]); 2] = [
    ("/concurrent/futures/thread.py", &["ThreadPoolExecutor"]),
    ("/multiprocessing/pool.py", &["ThreadPool"]),
];

/// What opens such as `/proc` names so: the beginning of the name, and calls as they are written.
const OPENERS: [(&str, &[&str]); 4] = [
    (
        "socket:",
        &[
            "socket.socket",
            "socket.socketpair",
            "socket.create_connection",
            "socketpair",
            "create_connection",
        ],
    ),
    ("pipe:", &["os.pipe", "os.pipe2", "pipe", "subprocess.Popen", "Popen"]),
    ("/memfd:", &["os.memfd_create", "memfd_create"]),
    (
        "/",
        &[
            "open",
            "os.open",
            "io.open",
            "os.dup",
            "os.fdopen",
            "tempfile.mkstemp",
            "tempfile.TemporaryFile",
            "tempfile.NamedTemporaryFile",
            "mkstemp",
            "TemporaryFile",
            "NamedTemporaryFile",
            "logging.FileHandler",
            "logging.handlers.RotatingFileHandler",
            "FileHandler",
            "RotatingFileHandler",
            "SummaryWriter",
            "np.memmap",
            "np.load",
            "numpy.memmap",
            "numpy.load",
            "mmap.mmap",
            "gzip.open",
            "h5py.File",
            "zipfile.ZipFile",
            "sqlite3.connect",
        ],
    ),
];

/// What has become more between the first look and the last, most first.
fn more<'a>(process: &Process<'a>, of: fn(&'a Opened) -> &'a [Kin]) -> Vec<(&'a Kin, u32)> {
    let (Some(first), Some(last)) = (process.opened.first(), process.opened.last()) else {
        return Vec::new();
    };
    let before = |kin: &Kin| {
        let same = |other: &&Kin| (&other.name, &other.place) == (&kin.name, &kin.place);
        of(first).iter().find(same).map_or(0, |other| other.count)
    };
    let mut more: Vec<(&Kin, u32)> =
        of(last).iter().map(|kin| (kin, kin.count.saturating_sub(before(kin)))).collect();
    more.retain(|(_, count)| *count > 0);
    more.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    more
}

/// What is known of the things that this series counts.
pub(crate) fn evidence(files: &Files<'_>, process: &Process<'_>, series: Series) -> Option<Evidence> {
    let more = match series {
        Series::Threads => more(process, |opened| &opened.threads),
        Series::Fds => more(process, |opened| &opened.files),
        _ => return None,
    };
    let kind = |(kin, count): &(&Kin, u32)| KindCount {
        count: *count,
        name: kin.name.clone(),
        function: kin.place.function.clone(),
        file: if kin.place.file.is_empty() { String::new() } else { files.display(&kin.place.file) },
        line: kin.place.line,
    };
    let kinds: Vec<KindCount> = more.iter().take(KINDS).map(kind).collect();
    let evidence = match series {
        Series::Threads => Evidence::Threads { kinds },
        _ => Evidence::Files { kinds },
    };
    (!more.is_empty()).then_some(evidence)
}

/// Are most of the open files that are more now segments of shared memory?
pub(crate) fn are_shared_memory(process: &Process<'_>) -> bool {
    let more = more(process, |opened| &opened.files);
    let count = |kinds: &mut dyn Iterator<Item = &(&Kin, u32)>| kinds.map(|(_, count)| count).sum::<u32>();
    let shared = count(&mut more.iter().filter(|(kin, _)| kin.name.starts_with("/dev/shm/")));
    shared > 0 && 2 * shared > count(&mut more.iter())
}

/// Lines that made the segments that are more now.
pub(crate) fn makers(files: &Files<'_>, process: &Process<'_>) -> Vec<Site> {
    let more = more(process, |opened| &opened.segments);
    let places = more.iter().map(|(kin, _)| &kin.place).filter(|place| place.line > 0);
    places.take(KINDS).map(|place| native::site(files, &place.file, place.line, &place.function)).collect()
}

/// What most of the threads run that are more now.
pub(crate) fn run_by_more<'a>(process: &Process<'a>) -> Option<&'a CodePlace> {
    more(process, |opened| &opened.threads).first().map(|(kin, _)| &kin.place)
}

/// The one line that begins threads that run the function that most of those more do, or has the pool whose they are.
pub(crate) fn beginning(files: &Files<'_>, process: &Process<'_>) -> Option<Site> {
    let place = run_by_more(process)?;
    if let Some((_, makers)) = POOLS.iter().find(|(file, _)| place.file.ends_with(file)) {
        return only(files, process, makers, |_, call| !call.managed);
    }
    let (owner, name) = place.function.rsplit_once('.').unwrap_or(("", &place.function));
    let owner = owner.rsplit('.').next().unwrap_or(owner);
    let mut paths = process.files();
    paths.extend((!paths.contains(&place.file.as_str())).then_some(place.file.as_str()));
    let mut sites = Vec::new();
    for path in paths {
        let Some(source) = files.source(path) else { continue };
        // A thread of a class of its own is begun where that is made.
        let own = if name == "run" && !owner.is_empty() { source.lines().calls(owner) } else { Vec::new() };
        let named = BEGINNERS.iter().flat_map(|beginner| source.lines().calls(beginner));
        let named = named.filter(|call| call.mentions.iter().any(|mentioned| mentioned == name));
        let display = files.display(path);
        sites.extend(own.into_iter().chain(named).map(|call| call.spot.site(&display, SiteRole::Grows)));
    }
    sites.dedup_by_key(|site| (site.file.clone(), site.line));
    (sites.len() == 1).then(|| sites.remove(0))
}

/// Part of what has become more from which on a kind of its own is not left out of account: one in so many.
const COUNTS: u32 = 4;

/// Have files of several kinds become more? Then no one line has opened all of them.
pub(crate) fn are_of_several_kinds(process: &Process<'_>) -> bool {
    let more = more(process, |opened| &opened.files);
    let all: u32 = more.iter().map(|(_, count)| count).sum();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for (kin, count) in &more {
        *kinds.entry(kind(&kin.name)).or_default() += count;
    }
    kinds.values().filter(|count| COUNTS * **count >= all).count() > 1
}

/// What one line may well open: sockets, pipes, files with names that end alike.
fn kind(name: &str) -> String {
    match name.strip_prefix('/') {
        Some(path) => format!("/{}", ending(path.trim_end_matches(" (deleted)")).unwrap_or_default()),
        None => name.split(':').next().unwrap_or(name).to_owned(),
    }
}

fn ending(name: &str) -> Option<String> {
    let (_, ending) = name.rsplit_once('.')?;
    let is_one = (1..=5).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    is_one.then(|| ending.to_owned())
}

/// Do texts in a call name a file of another kind (`"index.json"` where those opened are `shard_#.bin`)?
fn names_another(texts: &[String], opened: &str) -> bool {
    let of_opened = ending(opened.trim_end_matches(" (deleted)"));
    texts.iter().filter_map(|text| ending(text)).any(|ending| of_opened.as_ref() != Some(&ending))
}

/// The one call in a loop or function that opens what has become more, and after which no name is closed.
pub(crate) fn opener(files: &Files<'_>, process: &Process<'_>) -> Option<Site> {
    let more = more(process, |opened| &opened.files);
    let (kin, _) = more.first().filter(|_| !are_of_several_kinds(process))?;
    let (_, written) = OPENERS.iter().find(|(name, _)| kin.name.starts_with(name))?;
    let names: BTreeSet<&str> = written.iter().map(|name| name.rsplit('.').next().unwrap_or(name)).collect();
    let names: Vec<&str> = names.into_iter().collect();
    only(files, process, &names, |source, call| {
        let line = call.spot.line;
        let again = call.spot.function != "<module>" || !source.lines().loops_at(line).is_empty();
        let closed = |name: &String| {
            let closes = format!("{name}.close");
            source.lines().calls("close").iter().any(|other| other.callee == closes)
        };
        written.contains(&call.callee.as_str())
            && again
            && (!call.callee.ends_with("Popen") || call.mentions.iter().any(|name| name == "PIPE"))
            && !names_another(&call.texts, &kin.name)
            && !call.managed
            && !call.bound_to.as_ref().is_some_and(closed)
    })
}

/// The one call of these in the files that are known to run.
pub(crate) fn only_call(files: &Files<'_>, process: &Process<'_>, names: &[&str]) -> Option<Site> {
    only(files, process, names, |_, _| true)
}

fn only(
    files: &Files<'_>,
    process: &Process<'_>,
    names: &[&str],
    counts: impl Fn(&Source, &Call) -> bool,
) -> Option<Site> {
    let in_file = |path: &&str| {
        let source = files.source(path)?;
        let calls =
            names.iter().flat_map(|name| source.lines().calls(name)).filter(|call| counts(&source, call));
        Some(calls.map(|call| call.spot.site(&files.display(path), SiteRole::Grows)).collect::<Vec<_>>())
    };
    let paths = process.files();
    let mut calls = paths.iter().filter_map(in_file).flatten();
    calls.next().filter(|_| calls.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_name_a_file_of_another_kind_open_none_of_these() {
        let another = |text: &str, opened: &str| names_another(&[text.to_owned()], opened);
        assert!(another("index.json", "/data/shard_#.bin"));
        assert!(!another("index.json", "/data/index.json"));
        assert!(!another("rb", "/data/shard_#.bin"));
        let kinds =
            ["/run/#-loss.log", "/run/#-steps.log", "/tmp/# (deleted)", "socket:[#]", "pipe:[#]"].map(kind);
        assert_eq!(kinds, ["/log", "/log", "/", "socket", "pipe"]);
        assert!(!another("{}/{}.bin", "/data/#.bin"));
        assert!(another("run.log", "/tmp/# (deleted)"));
    }
}
