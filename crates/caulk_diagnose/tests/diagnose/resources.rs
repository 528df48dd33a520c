//! Threads, open files and segments that become more: what they are, and where they are made.

use caulk_core::wire::{
    CodePlace, ContainerKind, HeapFrame, HeapLive, HeapRow, HeapStack, Kin, LoopSite, Message, Opened, Trait,
};
use caulk_core::{Confidence, Finding, LeakClass, Series, Severity};

use crate::run::{FILE, MB, Run, elements, facts, library, rising};

const PROGRAM: &str = "def write():\n    pass\n\n\nclass Reader(Thread):\n    def run(self):\n        pass\n\n\nfor epoch in \
                       range(8):\n    Thread(target=write).start()\n    Thread(target=overwrite).start()\n    Reader().start()\n";

/// Eight epochs in which threads become more, those that run a function.
fn run(function: &str) -> Run {
    run_of(function, rising(400 * MB, 0, 8))
}

fn run_of(function: &str, in_use: impl IntoIterator<Item = u64>) -> Run {
    let threads = |boundary, count| {
        let place = CodePlace { file: FILE.into(), line: 1, function: function.into() };
        let main = CodePlace { file: FILE.into(), line: 1, function: "<module>".into() };
        let kin = |place, count| Kin { place, count, ..Kin::default() };
        let file = Kin { name: "/tmp/#.log".into(), count, ..Kin::default() };
        Opened {
            boundary,
            threads: vec![kin(main, 1), kin(place, count)],
            files: vec![file],
            ..Opened::default()
        }
    };
    let site = LoopSite { file: FILE.into(), line: 10, variable: "epoch".into(), ..LoopSite::default() };
    let run = Run::of(PROGRAM).epochs(in_use).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.threads = 4 + 3 * boundary.seq;
                boundary.fds = 20 + 2 * boundary.seq;
            }
        }
    });
    run.say(site).say(threads(0, 1)).say(threads(7, 19))
}

fn of(run: &Run, class: LeakClass) -> Finding {
    let findings = run.diagnose().findings;
    findings.into_iter().find(|finding| finding.class == class).expect("there are more and more")
}

/// No line.
const NONE: [u32; 0] = [];

fn told(finding: &Finding) -> Vec<String> {
    facts(finding).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn threads_are_told_by_what_they_run_and_blamed_where_they_begin() {
    let finding = of(&run("write"), LeakClass::ThreadNeverEnds);
    assert_eq!(finding.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [11]);
    assert!(
        told(&finding).iter().any(|text| text == "of those more 18 run `write` (train.py:1)"),
        "{:?}",
        told(&finding)
    );
    let source = "def write():\n    pass\n\n\nfor epoch in range(8):\n    Thread(\n        target=write\n    ).start()\n";
    let finding = of(&run("write").with_source(source), LeakClass::ThreadNeverEnds);
    assert_eq!(finding.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [6]);
}

#[test]
fn a_thread_of_a_class_of_its_own_begins_where_that_is_made() {
    let finding = of(&run("Reader.run"), LeakClass::ThreadNeverEnds);
    assert_eq!(finding.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [13]);
}

#[test]
fn what_no_line_or_more_than_one_begins_has_no_line() {
    assert!(of(&run("Pump.turn"), LeakClass::ThreadNeverEnds).sites.is_empty());
}

#[test]
fn open_files_are_told_by_their_names() {
    let finding = of(&run("write"), LeakClass::FileHandlesGrow);
    assert!(
        told(&finding).iter().any(|text| text == "of those more 18 are `/tmp/#.log`"),
        "{:?}",
        told(&finding)
    );
}

#[test]
fn the_one_call_that_leaves_something_open_is_blamed() {
    let of_source = |source: &str| -> Vec<u32> {
        let finding = of(&run("write").with_source(source), LeakClass::FileHandlesGrow);
        finding.sites.iter().map(|site| site.line).collect()
    };
    let each = "for epoch in range(8):\n    ";
    assert_eq!(of_source(&format!("with open(a) as f:\n    pass\n{each}os.open(path, 0)\n")), [4]);
    assert_eq!(of_source(&format!("{each}os.open('index.json', 0)\n")), NONE, "a file of another name");
    assert_eq!(
        of_source(&format!("{each}os.open(\n        'index.json', 0)\n")),
        NONE,
        "a file of another name"
    );
    let piped = |call: &str| {
        let run = run("write").with_source(&format!("{each}{call}\n")).edit(|recording| {
            for event in &mut recording.events {
                if let Message::Opened(opened) = &mut event.message {
                    opened.files[0].name = "pipe:[#]".into();
                }
            }
        });
        of(&run, LeakClass::FileHandlesGrow).sites.len()
    };
    assert_eq!(piped("children.append(subprocess.Popen(command, stdout=subprocess.PIPE))"), 1);
    assert_eq!(piped("children.append(subprocess.Popen(command))"), 0, "it has no pipe");
    assert_eq!(piped("children.append(subprocess.Popen(\n        command, stdout=subprocess.PIPE))"), 1);
    let several = run("write").with_source(&format!("{each}os.open(path, 0)\n")).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Opened(opened) = &mut event.message {
                let socket =
                    Kin { name: "socket:[#]".into(), count: opened.files[0].count, ..Kin::default() };
                opened.files.push(socket);
            }
        }
    });
    assert_eq!(of(&several, LeakClass::FileHandlesGrow).sites, [], "half of them are sockets");
    // Of another kind, closed, more than one, once for all.
    assert_eq!(of_source(&format!("{each}socket.socketpair()\n")), NONE);
    assert_eq!(of_source(&format!("{each}log = open(path)\n    log.close()\n")), NONE);
    assert_eq!(of_source(&format!("{each}os.open(path, 0)\n    open(path)\n")), NONE);
    assert_eq!(of_source("log = open(path)\nfor epoch in range(8):\n    pass\n"), NONE);
}

#[test]
fn idle_threads_of_a_library_are_blamed_on_what_has_them() {
    let mut run = run("write").with_source("for epoch in range(8):\n    pool = ThreadPoolExecutor(4)\n");
    run = run.edit(|recording| {
        for event in &mut recording.events {
            if let Message::Opened(opened) = &mut event.message {
                opened.threads[1].place.file = "/usr/lib/python3.11/concurrent/futures/thread.py".into();
            }
        }
    });
    let finding = of(&run, LeakClass::ThreadNeverEnds);
    assert_eq!(finding.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [2]);
}

#[test]
fn segments_that_nobody_unlinks_are_blamed_on_the_line_that_makes_them() {
    let mut run = run("write").edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.segment_bytes = 8 * MB * u64::from(boundary.seq);
            }
        }
    });
    for (boundary, count) in [(0, 0), (7, 56)] {
        let place = CodePlace { file: FILE.into(), line: 12, function: "<module>".into() };
        let kin = Kin { place, count, ..Kin::default() };
        run = run.say(Opened { boundary, segments: vec![kin], ..Opened::default() });
    }
    let finding = of(&run, LeakClass::SharedMemoryLeft);
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [12]);
    let growth = finding.growth.clone().expect("it grows by bytes");
    assert_eq!((growth.series, growth.bytes_per_epoch), (Series::Shm, Some((8 * MB) as f64)));
}

#[test]
fn threads_hold_what_they_allocate() {
    // 3 MB per epoch in blocks of 1 MB, below the function that the threads run.
    let frame =
        |file: &str, line, function: &str| HeapFrame { file: file.into(), line, function: function.into() };
    let below = vec![frame(FILE, 2, "write"), frame("/usr/lib/python3.11/threading.py", 975, "Thread.run")];
    let mut run = run_of("write", rising(400 * MB, 3 * MB, 8));
    run = run.say(HeapStack { id: 1, flags: 0, frames: below });
    for boundary in 0..8 {
        let bytes = 3 * MB * u64::from(boundary + 1);
        let rows = vec![HeapRow { id: 1, bytes, blocks: bytes / MB, deviation: MB / 10 }];
        run = run.say(HeapLive { boundary, interval: 524_288, bytes, rows, ..HeapLive::default() });
    }
    let finding = of(&run, LeakClass::ThreadNeverEnds);
    assert_eq!(finding.confidence, Confidence::Likely);
    let growth = finding.growth.as_ref().expect("there are more and more");
    assert_eq!((growth.series, growth.bytes_per_unit.round()), (Series::Threads, (3 * MB) as f64));
    assert_eq!(finding.chain.iter().map(|step| step.line).collect::<Vec<_>>(), [2]);
    let classes: Vec<_> = run.diagnose().findings.iter().map(|finding| finding.class).collect();
    assert!(!classes.contains(&LeakClass::NativeGrowth), "{classes:?}");
}

#[test]
fn what_a_library_notes_of_each_thread_is_their_matter() {
    let grown = |module| {
        let run = run_of("write", rising(400 * MB, MB, 8));
        let contents = elements(MB, &[Trait::Tensor]);
        let run = run.grown(ContainerKind::Dict, library(1, module, "_dangling"), contents, 1..9);
        let findings = run.traced(1, "target=write", "<module>").diagnose().findings;
        findings
            .into_iter()
            .find(|finding| finding.holder == format!("{module}._dangling"))
            .expect("it grows")
    };
    assert_eq!(grown("threading").severity, Severity::Info);
    assert!(grown("uploads").severity > Severity::Info);
}
