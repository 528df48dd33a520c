//! The Rust tests that took longest, from what nextest writes down of a run.

use std::cmp::Reverse;
use std::fs;
use std::time::{Duration, SystemTime};

use crate::console;
use crate::workspace::Workspace;

/// As many as are shown, of Rust's tests and of Python's.
pub(crate) const SHOWN: usize = 10;
/// Where nextest writes, below Cargo's target folder; set in `.config/nextest.toml`.
const JUNIT: &str = "nextest/default/junit.xml";

/// Prints the slowest tests of a run of nextest that began at this time; of another runner nothing is known.
pub(crate) fn print(workspace: &Workspace, began: SystemTime) {
    let path = workspace.target().join(JUNIT);
    let modified = fs::metadata(&path).and_then(|found| found.modified());
    let fresh = modified.is_ok_and(|modified| modified + Duration::from_secs(1) >= began);
    let Some(text) = fresh.then(|| fs::read_to_string(&path).ok()).flatten() else { return };
    console::step(format!("the {SHOWN} slowest Rust tests"));
    for (seconds, name) in slowest(&text) {
        console::note(format!("{seconds:7.2} s  {name}"));
    }
}

/// Seconds and names of the slowest test cases, slowest first.
fn slowest(junit: &str) -> Vec<(f64, String)> {
    let cases = junit.split("<testcase ").skip(1).filter_map(|case| {
        let seconds = attribute(case, "time")?.parse().ok()?;
        Some((seconds, format!("{} {}", attribute(case, "classname")?, attribute(case, "name")?)))
    });
    let mut cases: Vec<(f64, String)> = cases.collect();
    cases.sort_by_key(|(seconds, name)| (Reverse((seconds * 1e6) as u64), name.clone()));
    cases.truncate(SHOWN);
    cases
}

/// The value of an attribute of the element that the text begins with.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let element = element.split('>').next()?;
    let start = format!("{name}=\"");
    let from = if element.starts_with(&start) {
        start.len()
    } else {
        element.find(&format!(" {start}"))? + start.len() + 1
    };
    element[from..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first() {
        let text = r#"<testsuite name="a" time="9.0">
            <testcase name="b::quick" classname="caulk" timestamp="2026" time="0.005"></testcase>
            <testcase name="b::slow" classname="caulk::run" timestamp="2026" time="2.5"><failure time="7"/></testcase>
            <testcase name="b::medium" classname="caulk_wire" timestamp="2026" time="0.1">"#;
        let names = slowest(text).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names, ["caulk::run b::slow", "caulk_wire b::medium", "caulk b::quick"]);
    }
}
