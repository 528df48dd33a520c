//! What a container's loop makes: bytes that its elements do not tell are at the lines that allocate them.
//!
//! Views, graphs and objects of C++ tell the least of what they keep. Where lines in the loop that grows a proved container
//! allocate what stays, and nothing else that was found has a loop around them, the container is charged with it, so that no
//! line which only makes something is accused beside it.

use caulk_core::wire::Trait;
use caulk_core::{Evidence, Rate, Series, State};

use super::item::{Suspect, bytes, counts_bytes, same_line};
use crate::claim::Witness;
use crate::files::Files;
use crate::heap::{self, Line};
use crate::judged::Judged;
use crate::makers::Keeper;
use crate::native::are_native;
use crate::noted::is_noted_in;
use crate::process::Process;

/// Part of the growth of the process that lines must have to matter.
const PART: f64 = 0.25;

/// Charges proved containers with what is made where they are filled and stays, as far as nothing else accounts for it.
pub(super) fn weigh(files: &Files<'_>, process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    let whole = in_use.bytes_per_unit;
    let here = |suspect: &&Suspect<'_>| suspect.series == Series::InUse && suspect.located.is_some();
    let counted = |suspects: &[Suspect<'_>]| bytes(suspects.iter().filter(here));
    if suspects.is_empty() || whole - counted(suspects) < PART * whole {
        return;
    }
    let mut lines = heap::of_process(process, scale);
    lines.retain(|line| line.grows() && line.judgement.slope >= PART * (whole - counted(suspects)));
    if are_native(process, scale, &lines) {
        return;
    }
    let keepers: Vec<(usize, Keeper)> = (0..suspects.len())
        .filter(|at| is_first_of_line(suspects, *at) && suspects[*at].is_proved())
        .filter_map(|at| {
            let of_line = bytes(suspects.iter().filter(|other| same_line(&suspects[at], other)));
            let site = suspects[at].located.as_ref()?.site(files);
            (of_line > 0.0).then(|| (at, Keeper::new(files, process, of_line, site)))
        })
        .collect();
    let keeps = |keeper: &Keeper, line: &Line<'_>| keeper.is_at(files, line) || keeper.keeps(line);
    let mut charged = vec![0.0; suspects.len()];
    for line in &lines {
        let mut fitting = keepers.iter().filter(|(_, keeper)| keeps(keeper, line));
        // What several may keep is nobody's.
        if let (Some((at, _)), None) = (fitting.next(), fitting.next()) {
            charged[*at] += line.judgement.slope;
        }
    }
    for (at, charged) in charged.into_iter().enumerate() {
        let others = counted(suspects) - suspects[at].rate.bytes_per_unit;
        let most = charged.min(whole - others);
        if charged <= 0.0 || most <= suspects[at].rate.bytes_per_unit {
            continue;
        }
        let suspect = &mut suspects[at];
        suspect.rate.bytes_per_unit = most;
        suspect.rate.interval = None;
        suspect.beside = Some(Evidence::MadeInLoop { rate: Rate::new(charged, scale.verdict_unit()) });
    }
}

fn is_first_of_line(suspects: &[Suspect<'_>], at: usize) -> bool {
    suspects[at].located.is_some() && !suspects[..at].iter().any(|before| same_line(before, &suspects[at]))
}

impl Suspect<'_> {
    /// Was it seen to be grown at its line, and holds elements that may keep more than they tell?
    fn is_proved(&self) -> bool {
        let traced = self.located.as_ref().is_some_and(|located| located.traced.is_some());
        let plain = counts_bytes(self.kind) || self.holds(&Trait::Scalar);
        // What is noted of each thread holds nothing of what the thread does.
        let noted = is_noted_in(&self.holder.expression);
        traced
            && !plain
            && !noted
            && !self.rate.is_late
            && self.fills.is_none()
            && self.witness != Witness::Signs
            && self.series == Series::InUse
    }
}
