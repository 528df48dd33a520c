//! Elements that are objects of C code (compressors, parsers, database rows): how much each holds Python cannot tell, but
//! what the line that stores them allocates does.

use caulk_core::{Confidence, State};

use super::Suspect;
use crate::heap;
use crate::place::Located;
use crate::process::Process;
use crate::verdicts::Judged;

/// Bytes of an element above which it is told what it holds.
const TOLD: u64 = 4096;
/// Part of the process's growth that the line must account for.
const PART: f64 = 0.25;
/// Blocks that the line must gain for each element.
const BLOCKS: f64 = 0.5;
/// ... and those that it may gain where it is another line, which makes what is stored.
const MOST_BLOCKS: f64 = 4.0;
/// Facts of elements that hold nothing beside themselves, or are measured.
const MEASURED: [&str; 7] = ["scalar", "record", "function", "tensor", "array", "graph", "lasts"];

/// Charges them with what the line allocates that stores them.
pub(super) fn weigh(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    let own: Vec<&str> = process.files().into_iter().filter_map(stem).collect();
    if !suspects.iter().any(|suspect| suspect.is_opaque(&own)) {
        return;
    }
    let mut lines = heap::of_process(process, scale);
    lines.retain(|line| line.grows() && line.judgement.slope >= PART * in_use.bytes_per_unit);
    for suspect in suspects.iter_mut().filter(|suspect| suspect.is_opaque(&own)) {
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
            suspect.confidence = suspect.confidence.max(Confidence::Likely);
        }
    }
}

/// Name of a module by its file.
fn stem(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(".py")
}

/// Is what a line of the same function binds a part of what is stored?
fn makes_what_is_stored(located: &Located, line: u32) -> bool {
    let Some(statement) = located.module.statement_at(line) else { return false };
    let bound = statement.spot.text.split_once('=').map_or("", |(target, _)| target.trim());
    let stored = located.grow.as_ref().and_then(|grow| grow.value.as_ref());
    let same_function = located.module.function_at(line) == located.spot.function;
    same_function && stored.is_some_and(|value| value.names.iter().any(|name| name == bound))
}

impl Suspect<'_> {
    /// Are its elements of a type of an extension's, as neither built-in ones are nor those of the program's `own`
    /// modules?
    fn is_opaque(&self, own: &[&str]) -> bool {
        let certain = self.located.is_some() && self.confidence != Confidence::Suspected;
        let measured = |fact: &String| MEASURED.contains(&fact.as_str());
        let silent = self.contents.is_some_and(|look| {
            let of_extension = |name: &str| {
                name.split_once('.').is_some_and(|(module, _)| module != "__main__" && !own.contains(&module))
            };
            let known = look.element_types.first().is_some_and(|(name, _)| of_extension(name));
            known && look.bytes_per_element < TOLD && !look.traits.iter().any(measured)
        });
        certain && silent && self.rate.elements_per_unit > 0.0 && !super::counts_bytes(self.kind)
    }
}
