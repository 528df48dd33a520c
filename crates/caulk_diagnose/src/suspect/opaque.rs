//! Elements that are objects of C code (compressors, parsers, database rows, tables of data): how much each holds Python
//! cannot tell, but what the line that stores them allocates does, or the resident memory that nothing else accounts for.

use caulk_core::State;
use caulk_core::wire::Trait;

use super::item::{Suspect, counts_bytes, same_line};
use crate::claim::Witness;
use crate::heap;
use crate::judged::Judged;
use crate::place::Located;
use crate::process::Process;
use crate::unaccounted;

/// Bytes of an element above which it is told what it holds.
const TOLD: u64 = 4096;
/// Part of the process's growth that the line must account for.
const PART: f64 = 0.25;
/// Blocks that the line must gain for each element.
const BLOCKS: f64 = 0.5;
/// ... and those that it may gain where it is another line, which makes what is stored.
const MOST_BLOCKS: f64 = 4.0;
/// Lengths that must be known of what is charged with it.
const SEEN: usize = 3;
/// Facts of elements that hold nothing beside themselves, or are measured.
const MEASURED: [Trait; 7] =
    [Trait::Scalar, Trait::Record, Trait::Function, Trait::Tensor, Trait::Array, Trait::Graph, Trait::Lasts];
/// Packages whose objects hold what malloc gives.
const COUNTED: [&str; 2] = ["numpy", "torch"];

/// Charges them with what the line allocates that stores them, or where nothing rises that is counted with what does.
pub(super) fn weigh(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let own: Vec<&str> = process.files().into_iter().filter_map(stem).collect();
    if suspects.iter().any(|suspect| suspect.is_opaque(&own)) {
        weigh_by_line(process, judged, suspects, &own);
        weigh_by_rise(process, judged, suspects, &own);
    }
}

fn weigh_by_rise(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>], own: &[&str]) {
    let (Some(scale), Some(rise)) = (judged.scale, unaccounted::rise(process, judged)) else { return };
    let much = |rate: f64| rate >= PART * rise.bytes_per_unit;
    let lines = heap::of_process(process, scale);
    if lines.iter().any(|line| line.grows() && much(line.judgement.slope)) {
        return;
    }
    let fits = |suspect: &Suspect<'_>| {
        suspect.is_opaque(own) && suspect.has_memory_elsewhere() && suspect.rate.points >= SEEN
    };
    let mut opaque: Vec<&mut Suspect<'_>> = suspects.iter_mut().filter(|suspect| fits(suspect)).collect();
    let Some((first, others)) = opaque.split_first_mut() else { return };
    if !others.iter().all(|other| same_line(first, other)) {
        return;
    }
    let count = (1 + others.len()) as f64;
    for suspect in opaque {
        suspect.series = rise.series;
        suspect.rate.bytes_per_unit = rise.bytes_per_unit / count;
        suspect.rate.interval = rise.interval.map(|bounds| bounds.map(|bound| bound / count));
        suspect.witness = Witness::OnlyLine;
    }
}

fn weigh_by_line(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>], own: &[&str]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    let mut lines = heap::of_process(process, scale);
    lines.retain(|line| line.grows() && line.judgement.slope >= PART * in_use.bytes_per_unit);
    let certain = |suspect: &Suspect<'_>| suspect.is_opaque(own) && suspect.witness != Witness::Signs;
    for suspect in suspects.iter_mut().filter(|suspect| certain(suspect)) {
        let Some(located) = &suspect.located else { continue };
        let here = |line: &heap::Line<'_>| located.spot.covers(line.frame.line);
        let stores = lines.iter().filter(|line| line.frame.file == located.path).find(|line| {
            let blocks = line.blocks_per_unit / suspect.rate.elements_per_unit;
            let makes = || blocks < MOST_BLOCKS && makes_what_is_stored(located, line.frame.line);
            blocks >= BLOCKS && (here(line) || makes())
        });
        if let Some(line) = stores {
            suspect.rate.bytes_per_unit = suspect.rate.bytes_per_unit.max(line.judgement.slope);
            suspect.rate.interval = line.judgement.interval;
            suspect.witness = suspect.witness.max(Witness::OnlyLine);
        }
    }
}

/// Name of a module by its file.
fn stem(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(".py")
}

/// Is what a line of the same function binds a part of what is stored?
fn makes_what_is_stored(located: &Located, line: u32) -> bool {
    let Some(statement) = located.source.lines().statement_at(line) else { return false };
    let stored = located.grow.as_ref().and_then(|grow| grow.value.as_ref());
    let same_function = located.source.lines().function_at(line) == located.spot.function;
    same_function && stored.is_some_and(|value| value.names.iter().any(|name| statement.binds.contains(name)))
}

impl Suspect<'_> {
    /// Are its elements of a type of an extension's, as neither built-in ones are nor those of the program's `own`
    /// modules?
    fn is_opaque(&self, own: &[&str]) -> bool {
        let certain = self.located.as_ref().is_some_and(|located| located.witness != Witness::Signs);
        let silent = self.contents.is_some_and(|look| {
            let of_extension = |name: &str| {
                name.split_once('.').is_some_and(|(module, _)| module != "__main__" && !own.contains(&module))
            };
            let known = look.element_types.first().is_some_and(|(name, _)| of_extension(name));
            known && look.bytes_per_element < TOLD && !MEASURED.iter().any(|fact| look.traits.contains(fact))
        });
        certain && silent && self.rate.elements_per_unit > 0.0 && !counts_bytes(self.kind)
    }

    /// May its elements hold memory that is not malloc's, as objects of a package that brings an allocator along?
    fn has_memory_elsewhere(&self) -> bool {
        self.contents.is_some_and(|look| {
            let first = look.element_types.first();
            let package = first.and_then(|(name, _)| name.split('.').next());
            look.traits.contains(&Trait::Installed)
                && package.is_some_and(|package| !COUNTED.contains(&package))
        })
    }
}
