//! Things that grow, as findings: those with bytes to show for it, one per line and class.

mod accounted;
mod drawn;
mod fills;
mod item;
mod kin;
mod made;
mod names;
mod observed;
mod opaque;
mod small_leak;

use caulk_core::wire::{ContainerKind, Contents, Holder, Trait};
use caulk_core::{Evidence, Series, State, Verdict};

use caulk_python::BoundKind;

use crate::claim::{Observed, Standing, Witness};
use crate::class::Signs;
use crate::files::Files;
use crate::growth::{Rate, counts_often, is_gone, is_made_anew};
use crate::judged::Judged;
use crate::place::{self, Located, Sought, is_figure_registry, is_of_drawing};
use crate::process::Process;
use crate::retention;
use crate::units::{Scale, position};
use accounted::accounted_for;
pub(crate) use fills::filling;
use item::{Suspect, bytes, counts_bytes, holds_weakly, same_line};
pub(crate) use observed::path;

/// Part of the process's growth from which on a graph may be charged with what nothing else explains.
const SMALLEST_PART: f64 = 0.1;
/// The same of elements that were too large to be gone through.
const SMALLEST_CUT: f64 = 0.02;
/// Part of the smallest growth that counts below which something weighs nothing.
const WEIGHTLESS: f64 = 64.0;
/// Boundaries below which bytes may be undecided for want of time alone.
const YOUNG: usize = 10;
/// Bytes gained over the run from which a suspicion is worth a warning before that.
const SUSPICIOUS: f64 = 4.0 * 1024.0 * 1024.0;

/// Resident bytes for one byte that stays, at most.
const MOST_PAGES: f64 = 6.0;
/// Part of the resident bytes beyond those in use that an allocator must have free where they are more than that.
const GAPS: f64 = 0.8;
/// The same while it is open whether the resident memory goes on growing.
const MOST_UNDECIDED: f64 = 2.0;

/// What grows in a process, and is held by the program itself or has bytes to show.
pub(crate) fn of_process<'a>(
    files: &Files<'_>,
    process: &'a Process<'a>,
    judged: &Judged,
    died: bool,
) -> Vec<Suspect<'a>> {
    let mut suspects = those_that(Rate::grows, files, process, judged);
    names::leave_out(process, &mut suspects);
    if let Some(scale) = judged.scale {
        kin::join(files, process, scale, &mut suspects);
    }
    opaque::weigh(process, judged, &mut suspects);
    drawn::weigh(process, judged, &mut suspects);
    fills::leave_out(judged, &mut suspects);
    by_elimination(process, judged, &mut suspects);
    kin::weigh_crowd(process, judged, &mut suspects);
    made::weigh(files, process, judged, &mut suspects);
    let of_line: Vec<f64> = suspects
        .iter()
        .map(|suspect| {
            let with = |other: &&Suspect<'_>| {
                suspect.located.is_some() && other.series == suspect.series && same_line(suspect, other)
            };
            bytes(suspects.iter().filter(with))
        })
        .collect();
    let mut worth = Vec::new();
    for (suspect, of_line) in suspects.iter_mut().zip(of_line) {
        let bytes = of_line.max(suspect.rate.bytes_per_unit);
        suspect.standing = standing(suspect, bytes, judged, died);
        worth.push(suspect.worth_a_word(bytes, judged));
    }
    let mut worth = worth.into_iter();
    suspects.retain(|_| worth.next().unwrap_or(true));
    suspects
}

/// What was seen to be grown by a line, whether it goes on growing or not.
pub(crate) fn traced<'a>(files: &Files<'_>, process: &'a Process<'a>, judged: &Judged) -> Vec<Suspect<'a>> {
    let mut suspects = those_that(Rate::has_grown, files, process, judged);
    suspects.retain(|suspect| suspect.located.as_ref().is_some_and(|located| located.traced.is_some()));
    suspects
}

fn those_that<'a>(
    grow: fn(&Rate) -> bool,
    files: &Files<'_>,
    process: &'a Process<'a>,
    judged: &Judged,
) -> Vec<Suspect<'a>> {
    let Some(scale) = judged.scale else { return Vec::new() };
    let suspect = |id| {
        let (&holder, mut rate) = (process.holders.get(&id)?, Rate::of(process, scale, id)?);
        let looks = process.contents.get(&id).map_or(&[][..], Vec::as_slice);
        if of_caulk(holder) || is_gone(process, scale, id) || is_made_anew(looks) {
            return None;
        }
        let contents = looks.iter().rev().find(|look| !counts_often(look)).or(looks.last()).copied();
        let kind = process.lengths[&id].last().map_or(ContainerKind::List, |length| length.kind);
        let on_gpu = contents.is_some_and(|look| look.cuda_bytes_per_element > look.bytes_per_element / 2);
        let series = if on_gpu { on_device(contents) } else { Series::InUse };
        let grows = judged.series(series).filter(|verdict| verdict.state == State::Grows);
        let ceiling = match grows {
            Some(verdict) if on_gpu => Some(verdict.bytes_per_unit),
            _ => judged.ceiling().filter(|_| !on_gpu),
        };
        if let (Some(verdict), Some(last)) = (grows, process.of_unit(scale.unit).last()) {
            rate.spread_since(position(last) - f64::from(verdict.boundaries) * verdict.boundary_units);
        }
        let has_elements = kind != ContainerKind::Graph && !counts_bytes(kind);
        let there_is = judged.series(series).map_or(f64::INFINITY, |verdict| verdict.last);
        let is_too_much = |rate: &Rate| has_elements && rate.kept() > there_is;
        // A walk over all graphs counts once what a sample of the elements counts for each.
        let walked = looks.iter().rev().find(|look| look.walked > 0);
        if let Some(walked) = walked.filter(|_| is_too_much(&rate)) {
            rate.weigh(walked.bytes_per_element);
        }
        let shares = is_too_much(&rate);
        if shares {
            rate.forget_bytes();
        }
        if let Some(ceiling) = ceiling {
            rate.limit(ceiling);
        }
        if !grow(&rate) {
            return None;
        }
        let sought = Sought { id, kind, bytes_per_unit: rate.bytes_per_unit };
        let located = place::locate(files, process, scale, sought);
        let capacity = fills::capacity(contents);
        if capacity.is_some_and(|most| rate.elements >= most) {
            return None;
        }
        let fills = capacity
            .or_else(|| fills::bound(kind, located.as_ref(), &rate))
            .or_else(|| fills::bound_in_library(files, process, located.as_ref(), &rate));
        let by_signs = Signs { process, holder, kind, contents, located: located.as_ref() }.class();
        let witness = witness(located.as_ref(), judged.series(series), &rate);
        let standing = Standing::Light;
        let beside = None;
        Some(Suspect {
            holder,
            kind,
            contents,
            rate,
            located,
            by_signs,
            standing,
            witness,
            series,
            beside,
            shares,
            fills,
        })
    };
    process.ids().into_iter().filter_map(suspect).collect()
}

/// Bytes on a GPU are torch's, or another library's.
fn on_device(contents: Option<&Contents>) -> Series {
    let is_of_others = |look: &Contents| look.device_bytes_per_element > look.cuda_bytes_per_element / 2;
    if contents.is_some_and(is_of_others) { Series::CudaRest } else { Series::CudaAllocated }
}

impl Suspect<'_> {
    /// What nobody's line grows (containers of libraries) is worth one only if it weighs. Where the bytes have shown
    /// that there is nothing to fear, neither is what the source bounds, nor what was seen to gain much for a short time:
    /// it would have shown since. What fills up to its capacity never is, nor what would take for ever to weigh once the
    /// bytes are decided. `bytes`: what grows by the same line, per unit.
    fn worth_a_word(&self, bytes: f64, judged: &Judged) -> bool {
        let Some(located) = &self.located else { return self.standing > Standing::Light };
        let verdict = judged.series(self.series);
        let state = verdict.map(|verdict| verdict.state);
        let settled = matches!(state, Some(State::Flat | State::Plateaus | State::Sawtooth));
        let whole = verdict.map_or(0.0, |verdict| f64::from(verdict.boundaries) * verdict.boundary_units);
        let refuted =
            self.rate.span < whole / 2.0 && self.rate.bytes_per_unit >= judged.least_of(self.series);
        // Whatever its bound is: nothing says that it does not hold.
        let open = settled || state == Some(State::Undecided);
        let bounded = located.facts.bounds.iter().any(|bound| bound.called);
        let weighs = state == Some(State::Grows) && self.rate.bytes_per_unit >= judged.least_of(self.series);
        let full = !weighs && located.facts.bounds.iter().any(|bound| bound.kind == BoundKind::Capacity);
        let decided = settled || state == Some(State::Grows) && bytes > 0.0;
        let weightless = decided && bytes < judged.least_of(self.series) / WEIGHTLESS;
        // Weak containers follow what others keep alive.
        let weak = ["weakref.Weak", "_weakrefset.Weak", "torch.utils.weak.Weak"]
            .iter()
            .any(|name| self.holder.owner_type.starts_with(name));
        self.standing > Standing::Light
            || !(full || weak || weightless || settled && refuted || open && bounded)
    }
}

/// Caulk's own bookkeeping in the process is nobody's leak.
pub(crate) fn of_caulk(holder: &Holder) -> bool {
    let own = |name: &str| name == "caulk" || name.starts_with("caulk.");
    own(&holder.owner_type) || holder.path.iter().any(|step| own(&step.name) || own(&step.type_name))
}

/// Elements that do not tell what they keep. Arrays on mapped files: of those opened for copy-on-write (`mode="c"`) what was
/// written to is memory of the program's own. Links of a bounded cache of functools: the collector does not know them
/// (Modules/_functoolsmodule.c, `lru_list_elem_type`).
const SILENT: [&str; 2] = ["numpy.memmap", "functools._lru_list_elem"];

/// A look at one or two of many elements: the others need not be like these.
const FEW: u32 = 2;
const MANY: u64 = 20;

fn is_of_few(contents: &Contents, rate: &Rate) -> bool {
    let plain = contents.traits.contains(&Trait::Scalar) || contents.element_types.is_empty();
    !plain && (1..=FEW).contains(&contents.sampled) && rate.elements >= MANY
}

fn are_silent(contents: &Contents) -> bool {
    contents.element_types.iter().any(|(name, _)| SILENT.contains(&name.as_str()))
}

/// Elements that nobody had the time to look at, or only in part, or that are in a web of references (figures, modules), do not tell what
/// dies with them, and what is found behind a graph is the least that it keeps: inputs with gradients, say, and what C++
/// alone refers to, are not seen. Where one line is left that stores such elements, and the rest accounts for less than
/// half of the growth, what is left is its doing.
fn by_elimination(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let Some(in_use) = judged.in_use().filter(|verdict| verdict.state == State::Grows) else { return };
    let line = |suspect: &Suspect<'_>| {
        let located = suspect.located.as_ref().filter(|located| located.grow.is_some())?;
        Some((located.path.clone(), located.spot.line))
    };
    let seen: Vec<_> =
        suspects.iter().filter(|suspect| suspect.contents.is_some()).filter_map(line).collect();
    // What one line stores in several containers is alike.
    let is_alike = |suspect: &Suspect<'_>| line(suspect).is_some_and(|line| seen.contains(&line));
    let is_open = |suspect: &Suspect<'_>, with_borrowed: bool| {
        let part = suspect.rate.bytes_per_unit / in_use.bytes_per_unit;
        let graphs = suspect.kind != ContainerKind::Graph && suspect.holds(&Trait::Graph);
        let unseen = suspect.contents.is_none() && !counts_bytes(suspect.kind) && !is_alike(suspect);
        // Parameters that only their optimizer knows are in its groups and in its state.
        let parameters = place::is_optimizer_state(suspect.holder);
        let cut = suspect.kind != ContainerKind::Graph && suspect.contents.is_some_and(|look| look.truncated);
        let few = !counts_bytes(suspect.kind)
            && suspect.contents.is_some_and(|look| is_of_few(look, &suspect.rate));
        let open = unseen
            || suspect.shares
            || (few && part < 0.5)
            || parameters
            || suspect.holds(&Trait::Shared)
            || (with_borrowed && suspect.holds(&Trait::Borrowed))
            || suspect.contents.is_some_and(are_silent)
            || (cut && part >= SMALLEST_CUT)
            || (graphs && (SMALLEST_PART..0.5).contains(&part));
        let here = suspect.series == Series::InUse && !suspect.rate.is_late && suspect.fills.is_none();
        let open = open && !suspect.contents.is_some_and(holds_weakly);
        open && here && suspect.located.is_some() && suspect.witness != Witness::Signs
    };
    // Most tensors of arrays show all of them: they come after what is surely open.
    let with_borrowed = !suspects.iter().any(|suspect| is_open(suspect, false));
    let shares = |suspect: &Suspect<'_>| is_open(suspect, with_borrowed);
    // Figures, or tensors in a web of references, that no line is known to store may be all that is left.
    let elsewhere = |suspect: &Suspect<'_>| {
        is_figure_registry(suspect.holder) || suspect.is_heavy() && suspect.holds(&Trait::Shared)
    };
    if suspects.iter().any(|suspect| suspect.located.is_none() && elsewhere(suspect)) {
        return;
    }
    let here = suspects.iter().filter(|suspect| suspect.series == Series::InUse);
    let (open, known): (Vec<&Suspect<'_>>, Vec<&Suspect<'_>>) = here.partition(|suspect| shares(suspect));
    // What no line grows (the buffer within a stream, held from C) may well be a part of the open elements.
    let known: Vec<&Suspect<'_>> = known.into_iter().filter(|suspect| suspect.located.is_some()).collect();
    let rest = in_use.bytes_per_unit - accounted_for(process, judged, &known);
    // What a library stores at a line that calls it may be in what that line's program stores as well. Figures are the
    // weight of what is drawn.
    let stored = |suspect: &Suspect<'_>| {
        is_figure_registry(suspect.holder)
            || is_of_drawing(suspect.holder)
            || suspect.located.as_ref().is_some_and(|located| located.grow.is_some())
    };
    let by_user = open.iter().any(|suspect| stored(suspect));
    let counts = |suspect: &Suspect<'_>| shares(suspect) && (stored(suspect) || !by_user);
    let mut lines = open.iter().filter(|suspect| counts(suspect));
    let Some(first) = lines.next() else { return };
    if rest < 0.5 * in_use.bytes_per_unit || !lines.all(|other| same_line(first, other)) {
        return;
    }
    if let Some(suspect) = suspects.iter_mut().find(|suspect| counts(suspect)) {
        if suspect.holds(&Trait::Borrowed) && rest > 4.0 * suspect.rate.bytes_per_unit {
            suspect.beside = Some(Evidence::PartOfArrays);
        }
        suspect.rate.bytes_per_unit = suspect.rate.bytes_per_unit.max(rest);
        suspect.rate.interval = None;
    }
}

fn witness(located: Option<&Located>, verdict: Option<&Verdict>, rate: &Rate) -> Witness {
    let line = located.map_or(Witness::Signs, |located| located.witness);
    let grows = verdict.is_some_and(|verdict| verdict.state == State::Grows);
    // What was seen for less than one epoch may be empty at its end.
    let seen =
        rate.span >= 1.0 && (rate.points >= 3 || located.is_some_and(|located| located.traced.is_some()));
    if !grows || !seen { line.max(Witness::Signs) } else { line }
}

/// Bytes decide: a thing that grows while the bytes in use do not, where it lies, is worth knowing at most. `bytes`: what
/// grows by the same line, per unit; the lists of a dict are one matter.
fn standing(suspect: &Suspect<'_>, bytes: f64, judged: &Judged, died: bool) -> Standing {
    let Suspect { rate, series, .. } = suspect;
    if suspect.units_to_fill().is_some() {
        return Standing::Light;
    }
    let Some(in_use) = judged.series(*series) else { return Standing::Light };
    let over_run = bytes * rate.span;
    let weighs = bytes >= judged.least_of(*series);
    match in_use.state {
        State::Grows if weighs && !judged.is_small() && rate.is_late => Standing::Partial,
        State::Grows if weighs && !judged.is_small() => Standing::Whole,
        State::Grows => small_leak::standing(suspect, bytes, judged),
        // Exact witnesses may speak before the bytes are decided.
        State::Undecided if (in_use.boundaries as usize) < YOUNG || died => {
            let share = in_use.bytes_per_unit > 0.0 && bytes >= 0.2 * in_use.bytes_per_unit;
            let worth = over_run >= SUSPICIOUS && share && rate.points >= 3;
            if worth { Standing::Partial } else { Standing::Light }
        }
        _ => Standing::Light,
    }
}

/// Findings, one for each line and class.
pub(crate) fn findings(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    mut suspects: Vec<Suspect<'_>>,
) -> Vec<Observed> {
    let Some(scale) = judged.scale else { return Vec::new() };
    suspects.sort_by(|a, b| b.rate.bytes_per_unit.total_cmp(&a.rate.bytes_per_unit));
    let mut groups: Vec<Vec<Suspect<'_>>> = Vec::new();
    for suspect in suspects {
        match groups.iter_mut().find(|group| same_line(&group[0], &suspect)) {
            Some(group) => group.push(suspect),
            None => groups.push(vec![suspect]),
        }
    }
    let (on_gpu, here): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| group[0].series != Series::InUse);
    let cost = cost(process, judged, scale, &here);
    let costs = here.iter().map(|group| (group, cost)).chain(on_gpu.iter().map(|group| (group, 1.0)));
    costs.map(|(group, cost)| observed::finding(files, process, judged, scale, group, cost)).collect()
}

/// What one byte of the things that grow costs the machine: small blocks that stay keep whole pages around them, and
/// graphs that share what they saved are counted for each. Where the things found account for most of the growth, they
/// account for the growth of the resident memory, as far as that is known and not many times as much, or free in between, which is less than
/// what is in use where that was not touched yet; and never for more than the process grows.
fn cost(process: &Process<'_>, judged: &Judged, scale: Scale, groups: &[Vec<Suspect<'_>>]) -> f64 {
    let Some(in_use) = judged.in_use().filter(|verdict| verdict.state == State::Grows) else { return 1.0 };
    let weighing =
        groups.iter().filter(|group| group.iter().any(|suspect| suspect.standing > Standing::Light));
    let own: f64 = weighing.map(bytes).sum();
    if own <= 0.0 {
        return 1.0;
    }
    // What fills up has its pages, too.
    let filling = fills::rate(in_use, groups.iter().flatten());
    // Pages come and go by chance: where the bytes in them surely grow, uneven steps of theirs raise no doubt that they
    // do, but about how much.
    let resident = judged.series(Series::Rss).and_then(|verdict| match verdict.state {
        State::Grows => Some(verdict.bytes_per_unit),
        State::Undecided => verdict
            .interval
            .map(|[low, _]| low)
            .filter(|low| (in_use.bytes_per_unit..=MOST_UNDECIDED * in_use.bytes_per_unit).contains(low)),
        _ => None,
    });
    let resident = resident.map(|resident| resident - filling).filter(|resident| *resident > 0.0);
    let rate = in_use.bytes_per_unit - filling;
    // What far more pages are kept for is not known, unless an allocator has as many more of them free.
    let gaps = || retention::rate(process, scale);
    let known = |resident: &f64| *resident <= MOST_PAGES * own || gaps() >= GAPS * (*resident - rate);
    match resident.filter(known) {
        Some(resident) if own >= 0.5 * rate.min(resident) => resident.max(own.min(rate)) / own,
        _ if rate > 0.0 && own > in_use.interval.map_or(rate, |[_, high]| high - filling) => rate / own,
        _ => 1.0,
    }
}
