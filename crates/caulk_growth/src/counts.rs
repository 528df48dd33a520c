//! The judgement on exact numbers: lengths, nodes. They carry no noise, so three readings can show growth.

use caulk_core::State;

use crate::series::Series;
use crate::{JudgeOptions, Judgement, Point, judge, shape};

/// Judges a length, or another exact count, at boundaries: `grows` where it rose at most of them and did so lately,
/// `plateaus` where it rose and stopped (a buffer that filled). Three readings are enough. `equal_phases`: see
/// [`JudgeOptions::equal_phases`]; by the second, a program that other work on the machine slows down adds less for a while.
pub fn judge_counts(points: &[Point], equal_phases: bool) -> Judgement {
    let options =
        JudgeOptions { minimum_effect: 0.0, relative_effect: 0.0, equal_phases, ..JudgeOptions::default() };
    let series = Series::new(points, &options);
    let base = judge(points, &options);
    let verdict =
        |state, text: &str| Judgement { state, text: text.into(), more_needed: None, ..base.clone() };
    let rates = series.rates();
    if rates.len() < 2 {
        let more = Some((3 - series.len()) as u32);
        return Judgement { more_needed: more, ..verdict(State::Undecided, "too few boundaries") };
    }
    let (rises, falls) =
        (rates.iter().filter(|rate| **rate > 0.0).count(), rates.iter().filter(|rate| **rate < 0.0).count());
    let recent = &rates[rates.len() - shape::recent_count(rates.len())..];
    let rising_lately = recent.iter().any(|rate| *rate > 0.0);
    if rises == 0 && falls == 0 {
        return verdict(State::Flat, "keeps its length");
    }
    if falls > 0 {
        return match base.state {
            State::Grows => base,
            State::Undecided if rising_lately => {
                Judgement { more_needed: Some(2), ..verdict(State::Undecided, "shrinks at times") }
            }
            _ => verdict(State::Sawtooth, "is emptied again"),
        };
    }
    if !rising_lately {
        return verdict(State::Plateaus, "grew and stopped");
    }
    let slowing = shape::slows(&series.times, &series.values, &rates, 0.05, shape::slowing(equal_phases));
    if slowing && base.state != State::Grows {
        let more = Some(shape::until_settled(&rates, 0.0));
        return Judgement { more_needed: more, ..verdict(State::Undecided, "grows more and more slowly") };
    }
    if rises * 3 < rates.len() {
        return Judgement { more_needed: Some(2), ..verdict(State::Undecided, "grew at few boundaries") };
    }
    verdict(State::Grows, &format!("longer at {rises} of {} boundaries", rates.len()))
}
