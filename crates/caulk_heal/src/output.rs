//! Whether two runs have printed the same.
//!
//! An output that is identical needs no more. If one differs, the unedited program runs again: what differs between its two
//! runs is masked, value by value at its place; all other values decide about an edit. If too much differs, or the last result
//! does, nothing can be proven.

use crate::tokens::{Token, tokens};

/// Numbers that may differ between two runs of the unedited program.
const MOST_MASKED: f64 = 0.05;

/// The least part of the lines of an output that was cut off by time, which is enough for a comparison.
const LEAST_LINES: f64 = 0.5;

/// Standard output of a run.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// What was printed.
    pub text: &'a str,
    /// caulk ended the run, so that the last lines may be missing.
    pub cut: bool,
}

/// The output of the unedited program, with the places at which it differs from run to run.
#[derive(Debug, Clone)]
pub struct Reference {
    lines: Vec<String>,
    /// For each line, the places that are masked.
    masked: Vec<Vec<usize>>,
    tolerance: f64,
    cut: bool,
}

/// Why the outputs of two equal runs cannot serve as a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotComparable {
    /// Their numbers of lines differ.
    Lines(usize, usize),
    /// The text around the numbers differs in this line, from 1.
    Text(usize),
    /// A number of the last line differs.
    LastLine(usize),
    /// So many of all numbers differ.
    Numbers(usize, usize),
}

/// How much was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    /// Lines.
    pub lines: usize,
    /// Numbers in them, without those that are masked.
    pub numbers: usize,
}

/// The first place at which an output differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDifference {
    /// The line, from 1.
    pub line: usize,
    /// The line of the unedited program; empty if it printed fewer.
    pub before: String,
    /// The line of the edited one; empty if it printed fewer.
    pub after: String,
}

impl Reference {
    /// The output of a run of the unedited program. Numbers may differ by `tolerance`, relative to the larger one, or to 1.
    pub fn new(output: Output<'_>, tolerance: f64) -> Self {
        let lines: Vec<String> = lines(output).into_iter().map(str::to_owned).collect();
        let masked = vec![Vec::new(); lines.len()];
        Self { lines, masked, tolerance, cut: output.cut }
    }

    /// Masks what differs in a second run of the unedited program.
    ///
    /// # Errors
    /// [`NotComparable`] if too much differs.
    pub fn mask(&mut self, second: Output<'_>) -> Result<(), NotComparable> {
        let second_lines = lines(second);
        let count = match self.cut || second.cut {
            true => self.lines.len().min(second_lines.len()),
            false if self.lines.len() == second_lines.len() => self.lines.len(),
            false => return Err(NotComparable::Lines(self.lines.len(), second_lines.len())),
        };
        self.lines.truncate(count);
        let (mut masked, mut differing, mut all) = (Vec::new(), 0, 0);
        for (at, (one, other)) in self.lines.iter().zip(&second_lines).enumerate() {
            let places = differences(one, other, self.tolerance).ok_or(NotComparable::Text(at + 1))?;
            all += numbers(one);
            differing += places.len();
            if at + 1 == count && !places.is_empty() {
                return Err(NotComparable::LastLine(count));
            }
            masked.push(places);
        }
        if differing as f64 > MOST_MASKED * all as f64 {
            return Err(NotComparable::Numbers(differing, all));
        }
        self.masked = masked;
        Ok(())
    }

    /// Compares the output of an edited program.
    ///
    /// # Errors
    /// The first [`OutputDifference`].
    pub fn compare(&self, output: Output<'_>) -> Result<Compared, OutputDifference> {
        let other = lines(output);
        let (most, least) = (self.lines.len().max(other.len()), self.lines.len().min(other.len()));
        // Where both were cut off at about the same moment, about the same number of lines is there.
        let cut = (self.cut || output.cut) && least as f64 >= LEAST_LINES * most as f64;
        let count = if cut { least } else { most };
        let mut compared = Compared { lines: count, numbers: 0 };
        for at in 0..count {
            let before = self.lines.get(at).map(String::as_str);
            let after = other.get(at).copied();
            let masked = self.masked.get(at).map_or(&[][..], Vec::as_slice);
            let places = before.zip(after).and_then(|(one, other)| differences(one, other, self.tolerance));
            if !places.is_some_and(|places| places.iter().all(|place| masked.contains(place))) {
                let text = |line: Option<&str>| line.unwrap_or_default().to_owned();
                return Err(OutputDifference { line: at + 1, before: text(before), after: text(after) });
            }
            compared.numbers += before.map_or(0, numbers).saturating_sub(masked.len());
        }
        Ok(compared)
    }

    /// Places that are masked.
    pub fn masked(&self) -> usize {
        self.masked.iter().map(Vec::len).sum()
    }
}

/// Lines with something in them. Of an output that was cut off, the last one may be a half.
fn lines(output: Output<'_>) -> Vec<&str> {
    let Output { text, cut } = output;
    let whole = if cut { text.rfind('\n').map_or("", |end| &text[..end]) } else { text };
    whole.split('\n').filter(|line| !line.trim().is_empty()).collect()
}

fn numbers(line: &str) -> usize {
    tokens(line).iter().filter(|token| matches!(token, Token::Number { .. })).count()
}

/// The places of numbers that differ; `None` if something else does.
fn differences(one: &str, other: &str, tolerance: f64) -> Option<Vec<usize>> {
    let (one, other) = (tokens(one), tokens(other));
    if one.len() != other.len() {
        return None;
    }
    let mut places = Vec::new();
    for (at, pair) in one.iter().zip(&other).enumerate() {
        match pair {
            (Token::Number { text: a, value: x }, Token::Number { text: b, value: y }) => {
                if a != b && !close(*x, *y, tolerance) {
                    places.push(at);
                }
            }
            (Token::Time, Token::Time) => {}
            (Token::Text(a), Token::Text(b)) if a == b => {}
            _ => return None,
        }
    }
    Some(places)
}

fn close(x: f64, y: f64, tolerance: f64) -> bool {
    (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1.0) && tolerance > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "epoch 1: loss 0.5, 1.2 s\nepoch 2: loss 0.25, 1.3 s\n";

    fn whole(text: &str) -> Output<'_> {
        Output { text, cut: false }
    }

    /// Masks what differs between `RUN` and a second run.
    fn masked(second: &str) -> Result<Reference, NotComparable> {
        let mut reference = Reference::new(whole(RUN), 0.0);
        reference.mask(whole(second)).map(|()| reference)
    }

    fn first_difference(reference: &Reference, text: &str) -> Option<usize> {
        reference.compare(whole(text)).err().map(|difference| difference.line)
    }

    #[test]
    fn times_do_not_count_and_results_do() {
        let reference = Reference::new(whole(RUN), 0.0);
        assert_eq!(reference.compare(whole(RUN)), Ok(Compared { lines: 2, numbers: 4 }));
        assert_eq!(first_difference(&reference, "epoch 1: loss 0.5, 9 s\nepoch 2: loss 0.25, 9 s\n"), None);
        assert_eq!(first_difference(&reference, &RUN.replace("0.25", "0.26")), Some(2));
        assert_eq!(first_difference(&reference, "epoch 1: loss 0.5, 1 s\n"), Some(2));
        assert_eq!(first_difference(&reference, &format!("{RUN}warning\n")), Some(3));
    }

    #[test]
    fn what_differs_by_itself_is_masked_at_its_place() {
        let many: Vec<String> = (0..30).map(|n| format!("step {n}: 1\n")).collect();
        let many = many.concat();
        let other = many.replace("step 3: 1\n", "step 3: 2\n");
        let mut reference = Reference::new(whole(&many), 0.0);
        assert_eq!(first_difference(&reference, &other), Some(4));
        assert_eq!(reference.mask(whole(&other)), Ok(()));
        assert_eq!(reference.masked(), 1);
        assert_eq!(first_difference(&reference, &many.replace("step 3: 1\n", "step 3: 9\n")), None);
        assert_eq!(first_difference(&reference, &many.replace("step 4: 1\n", "step 4: 9\n")), Some(5));
    }

    #[test]
    fn runs_that_differ_too_much_prove_nothing() {
        assert_eq!(masked(&RUN.replace("0.25", "0.2")).err(), Some(NotComparable::LastLine(2)));
        assert_eq!(masked(&RUN.replace("0.5,", "0.6,")).err(), Some(NotComparable::Numbers(1, 4)));
        assert_eq!(masked("epoch 1: loss 0.5, 1 s\n").err(), Some(NotComparable::Lines(2, 1)));
        assert_eq!(masked(&RUN.replace("loss 0.5", "lost 0.5")).err(), Some(NotComparable::Text(1)));
    }

    #[test]
    fn an_output_that_was_cut_off_is_compared_as_far_as_both_go() {
        let reference = Reference::new(Output { text: RUN, cut: true }, 0.0);
        let compare =
            |text: &str| reference.compare(Output { text, cut: true }).map(|compared| compared.lines);
        assert_eq!(compare("epoch 1: loss 0.5, 1 s\nepo"), Ok(1));
        assert_eq!(compare(&format!("{RUN}epoch 3: lo")), Ok(2));
        assert!(compare("epo").is_err(), "nothing of it is there");
    }

    #[test]
    fn numbers_may_differ_by_the_tolerance() {
        let reference = Reference::new(whole("a 1.0000001\n"), 1e-6);
        assert_eq!(first_difference(&reference, "a 1.0000002\n"), None);
        assert_eq!(first_difference(&reference, "a 1.1\n"), Some(1));
    }
}
