//! Memory that is given back at once while something goes on growing: a full collection frees what imports and the first
//! epochs have left behind, and may hide as many epochs of a leak.

use caulk_core::wire::{ContainerLen, Unit};
use caulk_core::{Bytes, State};
use caulk_growth::{Judgement, Point};

use crate::baselines::Baselines;
use crate::growth::Rate;
use crate::process::Process;
use crate::units::{Scale, median, position};

/// Part of the usual rise that what goes on growing must account for.
const PART: f64 = 0.5;
/// Readings per fall, at least: what falls more often is what programs do.
const SELDOM: usize = 4;

/// The judgement of bytes in use, with falls taken out that something which grows was seen to grow across.
pub(crate) fn look_past(
    process: &Process<'_>,
    scale: Scale,
    baselines: &Baselines,
    judgement: Judgement,
) -> Judgement {
    if scale.unit != Unit::Epoch || judgement.state == State::Grows {
        return judgement;
    }
    let Some((points, lost)) = without_falls(process, scale, baselines) else { return judgement };
    let judged = Baselines::of(points, scale).judge();
    if judged.state != State::Grows {
        return judgement;
    }
    let text = format!("{}, but for {} that something else gave back", judged.text, Bytes(lost as u64));
    Judgement { last: judgement.last, text, ..judged }
}

/// The readings as they would be had nothing been given back, and how many bytes that was; `None` where what was given
/// back may be what grows.
fn without_falls(process: &Process<'_>, scale: Scale, baselines: &Baselines) -> Option<(Vec<Point>, f64)> {
    let points = baselines.points();
    let rate = |pair: &[Point]| (pair[1].value - pair[0].value) / (pair[1].at - pair[0].at);
    let (falls, rises): (Vec<&[Point]>, Vec<&[Point]>) = points.windows(2).partition(|pair| rate(pair) < 0.0);
    let usual = median(rises.into_iter().map(rate).collect())?;
    let few = !falls.is_empty() && falls.len() * SELDOM <= points.len();
    if !few || !falls.iter().all(|fall| grows_across(process, scale, usual, fall)) {
        return None;
    }
    let mut lost = 0.0;
    let mut repaired = Vec::from([*points.first()?]);
    for pair in points.windows(2) {
        if rate(pair) < 0.0 {
            lost += (usual - rate(pair)) * (pair[1].at - pair[0].at);
        }
        repaired.push(Point { value: pair[1].value + lost, ..pair[1] });
    }
    Some((repaired, lost))
}

/// Is there anything that makes up what memory usually rises by, and is longer after the fall than before? What is shorter is
/// what was given back: a list that is written out every so many epochs, say.
fn grows_across(process: &Process<'_>, scale: Scale, usual: f64, fall: &[Point]) -> bool {
    process.ids().into_iter().any(|id| {
        let place =
            |length: &&ContainerLen| Some((process.boundary(length.boundary).map(position)?, length.len));
        let seen: Vec<(f64, u64)> = process.lengths[&id].iter().filter_map(place).collect();
        let before = seen.iter().rfind(|(at, _)| *at <= fall[0].at);
        let after = seen.iter().find(|(at, _)| *at >= fall[1].at);
        let across = before.zip(after).is_some_and(|((_, before), (_, after))| after > before);
        let rate = || Rate::of(process, scale, id);
        across
            && rate().is_some_and(|rate| {
                rate.judgement.state == State::Grows && rate.bytes_per_unit >= PART * usual
            })
    })
}
