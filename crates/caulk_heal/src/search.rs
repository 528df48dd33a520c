//! Which edits to try together, and which to keep.
//!
//! All edits of a round are tried at once. If that does harm, the two halves are tried on their own. So one good round costs
//! one run, and a bad edit among n costs about 2 log n more.

use std::fmt;

use crate::effect::Effect;
use crate::output::OutputDifference;

/// Characters of a line of output that a refusal shows.
const MOST_SHOWN: usize = 80;

/// The runs that a round of so many edits takes: if all help, and about the most if one does harm. Beside them the unedited
/// program may run once more.
pub fn expected_runs(edits: usize) -> (usize, usize) {
    let halvings = edits.next_power_of_two().trailing_zeros() as usize;
    (edits.min(1), edits.min(1) * (2 + 2 * halvings))
}

/// Why an edit is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRefusal {
    /// The program printed something else.
    OutputChanged(OutputDifference),
    /// This file, which had to stay the same, did not.
    FileChanged(String),
    /// The program failed, with the last line of its standard error.
    Crashed(String),
    /// Autograd lost the graph that the program needs.
    GradientCut,
    /// Memory grows as before.
    NoEffect,
    /// The edit cannot be applied where it is, for this reason.
    CannotApply(String),
}

impl fmt::Display for EditRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutputChanged(OutputDifference { line, before, after }) => {
                let shown = |text: &str| {
                    if text.is_empty() { "nothing".into() } else { format!("`{}`", start(text)) }
                };
                write!(f, "output changed in line {line}: {} became {}", shown(before), shown(after))
            }
            Self::FileChanged(file) => write!(f, "`{file}` changed"),
            Self::Crashed(line) if line.is_empty() => f.write_str("the program failed with it"),
            Self::Crashed(line) => write!(f, "the program failed with it: {line}"),
            Self::GradientCut => f.write_str("it cuts a gradient that the program uses"),
            Self::NoEffect => f.write_str("no effect: memory grows as before"),
            Self::CannotApply(reason) => f.write_str(reason),
        }
    }
}

/// The start of a line, as much as a report shows.
fn start(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditVerdict {
    /// Growth gone or down by its share, output identical.
    Proven,
    /// Harmless; whether it helps is open, for this reason.
    Unproven(String),
    /// Not kept.
    Refused(EditRefusal),
}

/// The result of a run with some edits.
#[derive(Debug, Clone, PartialEq)]
pub enum Trial {
    /// It did harm.
    Harmed(EditRefusal),
    /// Output as before; one effect for each edit that was tried.
    Harmless(Vec<Effect>),
}

/// Finds the edits of one round to keep.
#[derive(Debug)]
pub struct Search {
    kept: Vec<usize>,
    /// Groups to try, the next one last.
    waiting: Vec<Vec<usize>>,
    verdicts: Vec<Option<EditVerdict>>,
}

impl Search {
    /// A round of so many edits.
    pub fn new(count: usize) -> Self {
        let waiting = if count == 0 { Vec::new() } else { vec![(0..count).collect()] };
        Self { kept: Vec::new(), waiting, verdicts: vec![None; count] }
    }

    /// The edits that the next run tries; they come on top of [`Self::kept`].
    pub fn next(&self) -> Option<&[usize]> {
        self.waiting.last().map(Vec::as_slice)
    }

    /// The edits that are kept so far.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Records the result of a run; true if all its edits are kept.
    pub fn record(&mut self, trial: Trial) -> bool {
        let Some(group) = self.waiting.pop() else { return false };
        match trial {
            Trial::Harmed(refusal) => self.split(group, EditVerdict::Refused(refusal)),
            Trial::Harmless(effects) => return self.judge(group, &effects),
        }
        false
    }

    fn judge(&mut self, group: Vec<usize>, effects: &[Effect]) -> bool {
        let helped: Vec<usize> = group
            .iter()
            .zip(effects)
            .filter(|(_, effect)| **effect == Effect::Helped)
            .map(|(edit, _)| *edit)
            .collect();
        if helped.len() == group.len() {
            for edit in group {
                self.verdicts[edit] = Some(EditVerdict::Proven);
                self.kept.push(edit);
            }
            return true;
        }
        if helped.is_empty() && effects.contains(&Effect::Nothing) && group.len() > 1 {
            self.split(group, EditVerdict::Refused(EditRefusal::NoEffect));
            return false;
        }
        for (edit, effect) in group.into_iter().zip(effects) {
            self.verdicts[edit] = match effect {
                Effect::Helped => None,
                Effect::Nothing => Some(EditVerdict::Refused(EditRefusal::NoEffect)),
                Effect::Open(reason) => Some(EditVerdict::Unproven(reason.clone())),
            };
        }
        // The rest was not measured without the others yet.
        if !helped.is_empty() {
            self.waiting.push(helped);
        }
        false
    }

    fn split(&mut self, mut group: Vec<usize>, verdict: EditVerdict) {
        if let [edit] = group[..] {
            self.verdicts[edit] = Some(verdict);
            return;
        }
        let rest = group.split_off(group.len() / 2);
        self.waiting.push(rest);
        self.waiting.push(group);
    }

    /// The result of each edit; those that were never tried alone are open.
    pub fn verdicts(self) -> Vec<EditVerdict> {
        let open = || EditVerdict::Unproven("not tried: the search was ended".into());
        self.verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(open)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search in which some edits crash and some have no effect; returns kept edits and the number of runs.
    fn search(count: usize, crash: &[usize], idle: &[usize]) -> (Vec<usize>, usize, Vec<EditVerdict>) {
        let mut search = Search::new(count);
        let mut runs = 0;
        while let Some(group) = search.next().map(<[usize]>::to_vec) {
            runs += 1;
            let harmed = group.iter().any(|edit| crash.contains(edit));
            let effect = |edit: &usize| if idle.contains(edit) { Effect::Nothing } else { Effect::Helped };
            let trial = if harmed {
                Trial::Harmed(EditRefusal::Crashed(String::new()))
            } else {
                Trial::Harmless(group.iter().map(effect).collect())
            };
            search.record(trial);
        }
        let mut kept = search.kept().to_vec();
        kept.sort_unstable();
        (kept, runs, search.verdicts())
    }

    #[test]
    fn good_edits_cost_one_run() {
        let (kept, runs, verdicts) = search(5, &[], &[]);
        assert_eq!((kept.len(), runs), (5, 1));
        assert!(verdicts.iter().all(|verdict| *verdict == EditVerdict::Proven));
        assert_eq!(search(0, &[], &[]).1, 0);
    }

    #[test]
    fn one_bad_edit_costs_no_more_than_expected() {
        for count in 1..20 {
            let most = (0..count).map(|bad| search(count, &[bad], &[]).1).max();
            // The unedited program runs once more to learn what differs by itself.
            assert!(most < Some(expected_runs(count).1), "{count}: {most:?}");
        }
    }

    #[test]
    fn a_bad_edit_is_found_among_many() {
        let (kept, runs, verdicts) = search(8, &[5], &[]);
        assert_eq!(kept, [0, 1, 2, 3, 4, 6, 7]);
        assert!(runs <= 7, "{runs}");
        assert_eq!(verdicts[5], EditVerdict::Refused(EditRefusal::Crashed(String::new())));
    }

    #[test]
    fn edits_without_effect_are_taken_out_and_the_rest_is_measured_again() {
        let (kept, runs, verdicts) = search(3, &[], &[1]);
        assert_eq!((kept, runs), (vec![0, 2], 2));
        assert_eq!(verdicts[1], EditVerdict::Refused(EditRefusal::NoEffect));
    }

    #[test]
    fn what_cannot_be_decided_is_not_kept() {
        let mut search = Search::new(1);
        assert!(!search.record(Trial::Harmless(vec![Effect::Open("too short".into())])));
        assert_eq!((search.next(), search.kept()), (None, &[][..]));
        assert_eq!(search.verdicts(), [EditVerdict::Unproven("too short".into())]);
    }
}
