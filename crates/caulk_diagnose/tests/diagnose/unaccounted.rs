//! Resident memory that rises though nothing rises that is counted.

use caulk_core::wire::{ContainerKind, Message};
use caulk_core::{Confidence, LeakClass, Series, Severity, State};

use crate::run::{MB, Run, attribute, elements, rising};

const SOURCE: &str = "\
class Log:
    def keep(self, table):
        self.tables.append(table.sort('score'))
";

/// Twelve epochs in which resident memory rises by 8 MB, and so many bytes of that are known.
fn run(element_type: &str, kept_free: u64) -> Run {
    let mut contents = elements(200, &[]);
    contents.element_types = vec![(element_type.to_owned(), 8)];
    let level = Run::of(SOURCE).epochs([400 * MB; 12]).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.rss_bytes += boundary.index * 8 * MB;
                boundary.malloc_free_bytes = boundary.index * kept_free;
            }
        }
    });
    level.grown(ContainerKind::List, attribute(1, "log", "Log", "tables"), contents, rising(1, 1, 12)).traced(
        1,
        "self.tables.append",
        "Log.keep",
    )
}

#[test]
fn objects_of_a_library_that_does_not_say_what_it_holds_are_charged_with_it() {
    let run = run("polars.dataframe.frame.DataFrame", 0);
    let found = run.finding();
    assert_eq!((found.class, found.confidence), (LeakClass::UnboundedHistory, Confidence::Likely));
    assert!(found.severity > Severity::Info && found.sites[0].line == 3, "{found:#?}");
    let growth = found.growth.expect("it grows");
    assert_eq!(growth.series, Series::Rss);
    assert!((growth.bytes_per_unit / MB as f64 - 8.0).abs() < 0.1, "{}", growth.bytes_per_unit);
    // Resident memory decides then.
    let verdicts = run.diagnose().verdicts;
    let in_use = verdicts.iter().find(|verdict| verdict.series == Series::InUse).expect("it is told");
    assert_eq!((in_use.state, in_use.interval), (State::Undecided, None));
}

#[test]
fn objects_that_hold_nothing_are_not() {
    for (element_type, kept_free) in [
        // What was set aside before is touched now.
        ("datetime.datetime", 0),
        ("float", 0),
        // The allocator accounts for it.
        ("polars.dataframe.frame.DataFrame", 7 * MB),
    ] {
        let found = run(element_type, kept_free).diagnose().findings;
        assert!(found.iter().all(|finding| finding.severity == Severity::Info), "{element_type}: {found:#?}");
    }
}
