//! Elements that are objects of C code (compressors, parsers, database rows): how much each holds Python cannot tell, but
//! what the line that stores them allocates does.

use caulk_core::{Confidence, State};

use super::Suspect;
use crate::heap;
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
const MEASURED: [&str; 5] = ["scalar", "tensor", "array", "graph", "lasts"];

/// Charges them with what the line allocates that stores them.
pub(super) fn weigh(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    if !suspects.iter().any(Suspect::is_opaque) {
        return;
    }
    let mut lines = heap::of_process(process, scale);
    lines.retain(|line| line.grows() && line.judgement.slope >= PART * in_use.bytes_per_unit);
    for suspect in suspects.iter_mut().filter(|suspect| suspect.is_opaque()) {
        let Some(located) = &suspect.located else { continue };
        let same_function = |line: &&heap::Line<'_>| {
            let function = || located.module.function_at(line.frame.line);
            line.frame.file == located.path && function() == located.spot.function
        };
        let mut near: Vec<_> = lines.iter().filter(same_function).collect();
        // The line itself, or another of its function that allocates as often as it stores.
        near.sort_by_key(|line| !located.spot.covers(line.frame.line));
        let stores = near.into_iter().find(|line| {
            let blocks = line.blocks_per_unit / suspect.rate.elements_per_unit;
            let most = if located.spot.covers(line.frame.line) { f64::INFINITY } else { MOST_BLOCKS };
            (BLOCKS..most).contains(&blocks)
        });
        if let Some(line) = stores {
            suspect.rate.bytes_per_unit = suspect.rate.bytes_per_unit.max(line.judgement.slope);
            suspect.rate.interval = line.judgement.interval;
            suspect.confidence = suspect.confidence.max(Confidence::Likely);
        }
    }
}

impl Suspect<'_> {
    fn is_opaque(&self) -> bool {
        let certain = self.located.is_some() && self.confidence != Confidence::Suspected;
        let measured = |fact: &String| MEASURED.contains(&fact.as_str());
        let silent = self.contents.is_some_and(|look| {
            look.sampled > 0 && look.bytes_per_element < TOLD && !look.traits.iter().any(measured)
        });
        certain && silent && self.rate.elements_per_unit > 0.0 && !super::counts_bytes(self.kind)
    }
}
