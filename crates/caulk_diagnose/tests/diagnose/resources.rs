//! Threads, open files and segments that become more: what they are, and where they are made.

use caulk_core::wire::{CodePlace, Kin, LoopSite, Message, Opened};
use caulk_core::{Finding, LeakClass, Series, Severity};

use crate::run::{FILE, MB, Run};

const PROGRAM: &str = "def write():\n    pass\n\n\nclass Reader(Thread):\n    def run(self):\n        pass\n\n\nfor epoch in \
                       range(8):\n    Thread(target=write).start()\n    Thread(target=overwrite).start()\n    Reader().start()\n";

/// Eight epochs in which threads become more, those that run a function.
fn run(function: &str) -> Run {
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
    let run = Run::of(PROGRAM).epochs([400 * MB; 8]).edit(|recording| {
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

fn told(finding: &Finding) -> Vec<&str> {
    finding.evidence.iter().map(|evidence| evidence.text.as_str()).collect()
}

#[test]
fn threads_are_told_by_what_they_run_and_blamed_where_they_begin() {
    let finding = of(&run("write"), LeakClass::ThreadNeverEnds);
    assert_eq!(finding.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [11]);
    assert!(told(&finding).contains(&"of those more 18 run `write` (train.py:1)"), "{:?}", told(&finding));
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
    assert!(told(&finding).contains(&"of those more 18 are `/tmp/#.log`"), "{:?}", told(&finding));
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
    let growth = finding.growth.expect("it grows by bytes");
    assert_eq!((growth.series, growth.bytes_per_epoch), (Series::Shm, Some((8 * MB) as f64)));
}
