//! Resident memory that rises though nothing rises that is counted.

use caulk_core::wire::{Boundary, ContainerKind, Message, Trait};
use caulk_core::{Confidence, LeakClass, Series, Severity, State};

use crate::run::{MB, Run, attribute, elements, rising};

const SOURCE: &str = "\
class Log:
    def keep(self, table):
        self.tables.append(table.sort('score'))
";

/// Twelve epochs in which resident memory rises by 8 MB, and a list of such objects gets longer. `set`: what is known.
fn run(element_type: &str, traits: &[Trait], set: impl Fn(u64, &mut Boundary)) -> Run {
    let mut contents = elements(200, traits);
    contents.element_types = vec![(element_type.to_owned(), 8)];
    let level = Run::of(SOURCE).epochs([400 * MB; 12]).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.rss_bytes += boundary.index * 8 * MB;
                set(boundary.index, boundary);
            }
        }
    });
    let grown =
        level.grown(ContainerKind::List, attribute(1, "log", "Log", "tables"), contents, rising(1, 1, 12));
    grown.traced(1, "self.tables.append", "Log.keep")
}

const TABLE: &str = "polars.dataframe.frame.DataFrame";

#[test]
fn objects_of_a_library_that_does_not_say_what_it_holds_are_charged_with_it() {
    let run = run(TABLE, &[Trait::Installed], |_, _| {});
    let found = run.finding();
    assert_eq!((found.class, found.confidence), (LeakClass::UnboundedHistory, Confidence::Likely));
    assert!(found.severity > Severity::Info && found.sites[0].line == 3, "{found:#?}");
    let growth = found.growth.clone().expect("it grows");
    assert_eq!(growth.series, Series::Rss);
    assert!((growth.bytes_per_unit / MB as f64 - 8.0).abs() < 0.1, "{}", growth.bytes_per_unit);
    // Resident memory decides then.
    let verdicts = run.diagnose().verdicts;
    let in_use = verdicts.iter().find(|verdict| verdict.series == Series::InUse).expect("it is told");
    assert_eq!((in_use.state, in_use.interval), (State::Undecided, None));
}

#[test]
fn they_are_charged_with_what_is_mapped_beside_malloc_too() {
    let run =
        run(TABLE, &[Trait::Installed], |epoch, boundary| boundary.mapped_bytes = (200 + 9 * epoch) * MB);
    let found = run.finding();
    assert!(found.severity > Severity::Info && found.sites[0].line == 3, "{found:#?}");
    let growth = found.growth.clone().expect("it grows");
    assert_eq!(growth.series, Series::InUse);
    assert!((growth.bytes_per_unit / MB as f64 - 8.0).abs() < 0.1, "{}", growth.bytes_per_unit);
}

#[test]
fn objects_that_hold_nothing_are_not() {
    let check = |element_type, traits, set: fn(u64, &mut Boundary)| {
        let found = run(element_type, traits, set).diagnose().findings;
        assert!(found.iter().all(|finding| finding.severity == Severity::Info), "{element_type}: {found:#?}");
    };
    // What was set aside before is touched now.
    check("datetime.datetime", &[], |_, _| {});
    check("float", &[Trait::Scalar], |_, _| {});
    check("records.Summary", &[], |_, _| {});
    check("torch.Size", &[Trait::Installed], |_, _| {});
    // More was handed out in the beginning than was resident.
    check(TABLE, &[Trait::Installed], |epoch, boundary| boundary.rss_bytes = (100 + 8 * epoch) * MB);
    // The allocator accounts for it.
    check(TABLE, &[Trait::Installed], |epoch, boundary| boundary.malloc_free_bytes = epoch * 7 * MB);
}
