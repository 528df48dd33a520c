//! Why rules say nothing of what grows at a line, beside what the analysis knows of it.

use caulk_python::Analysis;
use caulk_python::program::{GrowthCase, GrowthFact};

use crate::classify::{Purpose, is_limited, keyed};

/// Why nothing is reported at a line, one reason each.
pub fn silence(analysis: &Analysis, path: &str, line: u32) -> Vec<String> {
    let project = analysis.project();
    let mut reasons = analysis.silence(path, line);
    let here = |growth: &&GrowthFact| {
        project.find(path) == Some(growth.statement.file) && project.line(growth.statement) == line
    };
    for growth in analysis.growths().iter().filter(here) {
        let container = project.text(growth.container);
        let said = growth.cases.iter().filter_map(|case| judged(analysis, growth, case));
        reasons.extend(said.map(|said| format!("`{container}` {said}")));
    }
    reasons.sort();
    reasons.dedup();
    reasons
}

fn judged(analysis: &Analysis, growth: &GrowthFact, case: &GrowthCase) -> Option<&'static str> {
    if is_limited(case) {
        return Some(
            "grows only while it is short, once, or at chosen steps, as the condition around this says",
        );
    }
    match keyed(analysis, growth, case) {
        Purpose::Finite => Some("has as many entries as keys, and nothing says that these are ever new ones"),
        Purpose::Numbered => {
            Some("is stored in under keys that the next pass brings again: entries are replaced")
        }
        _ => None,
    }
}
