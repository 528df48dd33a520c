//! Results as a table, with totals and the reasons for what is missing.

use serde::Serialize;

use crate::columns;
use crate::zoo::needs::Needs;
use crate::zoo::score::{CleanScore, Found, LeakScore};

/// One scenario's results; `Err` holds why a program gave none.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// Name of the scenario.
    pub(crate) id: String,
    /// Its leak class.
    pub(crate) class: String,
    /// Whether a miss counts.
    pub(crate) due: bool,
    /// The leaking program, if there is one.
    pub(crate) leaky: Option<Result<LeakScore, String>>,
    /// How many epochs it takes until the line is named, where that was asked.
    pub(crate) needs: Option<Needs>,
    /// The clean program.
    pub(crate) clean: Option<Result<CleanScore, String>>,
}

impl Row {
    /// Everything that was asked of this scenario: the line, in time, where it is due; nothing that only looks like a
    /// leak; silence on clean. Any line of a leak explains it, and what a container or class is called is for people.
    pub(crate) fn passed(&self) -> bool {
        let line = self.leaky.as_ref().is_none_or(|result| found(result) == Found::Line);
        let leak = !self.due || line && self.needs.as_ref().is_none_or(Needs::are_met);
        leak && self.leaky.as_ref().is_none_or(blames_no_friend) && self.clean.as_ref().is_none_or(is_quiet)
    }
}

fn found(result: &Result<LeakScore, String>) -> Found {
    result.as_ref().map_or(Found::No, |score| score.found)
}

fn blames_no_friend(result: &Result<LeakScore, String>) -> bool {
    result.as_ref().is_ok_and(|score| score.friends_blamed.is_empty())
}

fn is_quiet(result: &Result<CleanScore, String>) -> bool {
    result.as_ref().is_ok_and(|score| score.alarms.is_empty())
}

/// The whole table.
pub(crate) fn render(rows: &[Row]) -> String {
    let head = ["scenario", "class", "line", "epochs", "container", "class right", "growth", "clean"];
    let head = head.map(String::from);
    let cells: Vec<_> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let table = columns::align(&cells);
    [table, misses(rows), totals(rows)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn cells(row: &Row) -> [String; 8] {
    let class =
        if row.due || row.leaky.is_none() { row.class.clone() } else { format!("{} (not due)", row.class) };
    let [line, container, class_right, growth] = match &row.leaky {
        None => [""; 4].map(String::from),
        Some(Err(_)) => ["failed", "", "", ""].map(String::from),
        Some(Ok(score)) => leak_cells(score),
    };
    let clean = match &row.clean {
        None => "",
        Some(Err(_)) => "failed",
        Some(Ok(score)) if score.alarms.is_empty() => "quiet",
        Some(Ok(_)) => "ALARM",
    };
    let needs = row.needs.as_ref().map_or_else(String::new, Needs::told);
    [row.id.clone(), class, line, needs, container, class_right, growth, clean.into()]
}

fn leak_cells(score: &LeakScore) -> [String; 4] {
    let line = match score.found {
        Found::Line => "yes",
        Found::Nearby => "nearby",
        Found::No => return ["NO", "", "", ""].map(String::from),
    };
    let class = if score.class { "yes".into() } else { format!("no: {}", score.claimed_class) };
    let growth = score
        .growth_ratio
        .map_or_else(String::new, |ratio| format!("{ratio:.2}x{}", if score.growth { "" } else { " off" }));
    [line.into(), if score.container { "yes" } else { "no" }.into(), class, growth]
}

fn misses(rows: &[Row]) -> String {
    rows.iter().flat_map(reasons).collect::<Vec<_>>().join("\n")
}

fn reasons(row: &Row) -> Vec<String> {
    let mut lines = Vec::new();
    match &row.leaky {
        Some(Err(error)) => lines.push(format!("{}: leaky program: {error}", row.id)),
        Some(Ok(score)) => {
            if score.found < Found::Line || !score.container || !score.class || !score.growth {
                lines.push(format!("{}: {}", row.id, score.why));
            }
            lines.extend(score.friends_blamed.iter().map(|friend| format!("{}: {friend}", row.id)));
        }
        None => {}
    }
    if let Some(Needs::Failed(error)) = &row.needs {
        lines.push(format!("{}: {error}", row.id));
    }
    match &row.clean {
        Some(Err(error)) => lines.push(format!("{}: clean program: {error}", row.id)),
        Some(Ok(score)) => {
            lines.extend(score.alarms.iter().map(|alarm| format!("{}: clean: {alarm}", row.id)));
        }
        None => {}
    }
    lines
}

fn totals(rows: &[Row]) -> String {
    let due: Vec<_> = rows.iter().filter(|row| row.due).filter_map(|row| row.leaky.as_ref()).collect();
    let count =
        |holds: fn(&LeakScore) -> bool| due.iter().filter(|result| result.as_ref().is_ok_and(holds)).count();
    let clean: Vec<_> = rows.iter().filter_map(|row| row.clean.as_ref()).collect();
    let friends = rows.iter().filter_map(|row| row.leaky.as_ref()?.as_ref().ok());
    let passed = rows.iter().filter(|row| row.passed()).count();
    let asked: Vec<_> = rows.iter().filter(|row| row.due).filter_map(|row| row.needs.as_ref()).collect();
    let in_time = asked.iter().filter(|needs| needs.are_met()).count();
    let in_time =
        if asked.is_empty() { String::new() } else { format!("   in time: {in_time} of {}", asked.len()) };
    format!(
        "due: {}   line: {}   container: {}   class: {}   growth: {}{in_time}\nclean: {}   quiet: {}   \
         false friends blamed: {}\n{passed} passed, {} failed",
        due.len(),
        count(|score| score.found == Found::Line),
        count(|score| score.container),
        count(|score| score.class),
        count(|score| score.found > Found::No && score.growth),
        clean.len(),
        clean.iter().filter(|result| is_quiet(result)).count(),
        friends.map(|score| score.friends_blamed.len()).sum::<usize>(),
        rows.len() - passed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, due: bool, found: Found, alarms: &[&str]) -> Row {
        let most = if found == Found::Line { Needs::Epochs(4) } else { Needs::MoreThan(6) };
        let leaky = LeakScore {
            found,
            container: found > Found::No,
            class: found == Found::Line,
            claimed_class: "unbounded-history".into(),
            growth_ratio: Some(1.07),
            growth: true,
            friends_blamed: vec![],
            why: "in use undecided over 4 boundaries".into(),
        };
        let clean = CleanScore { alarms: alarms.iter().map(ToString::to_string).collect() };
        Row {
            id: id.into(),
            class: "loss-kept-with-graph".into(),
            due,
            leaky: Some(Ok(leaky)),
            needs: due.then_some(most),
            clean: Some(Ok(clean)),
        }
    }

    #[test]
    fn the_table_ends_with_totals_and_reasons() {
        let rows = [
            row("a", true, Found::Line, &[]),
            row("b", true, Found::No, &[]),
            row("c", false, Found::Nearby, &["main in use `grows`"]),
        ];
        let expected = "\
scenario  class                           line    epochs  container  class right            growth  clean
a         loss-kept-with-graph            yes     4       yes        yes                    1.07x   quiet
b         loss-kept-with-graph            NO      over 6                                            quiet
c         loss-kept-with-graph (not due)  nearby          yes        no: unbounded-history  1.07x   ALARM

b: in use undecided over 4 boundaries
c: in use undecided over 4 boundaries
c: clean: main in use `grows`

due: 2   line: 1   container: 1   class: 1   growth: 1   in time: 1 of 2
clean: 3   quiet: 2   false friends blamed: 0
1 passed, 2 failed";
        assert_eq!(render(&rows), expected);
    }

    #[test]
    fn a_leak_that_is_named_late_or_beside_what_only_looks_like_one_is_no_pass() {
        let named = row("a", true, Found::Line, &[]);
        assert!(named.passed());
        assert!(!Row { needs: Some(Needs::MoreThan(6)), ..named.clone() }.passed());
        let blaming = |due| {
            let mut row = row("a", due, Found::Line, &[]);
            if let Some(Ok(score)) = &mut row.leaky {
                score.friends_blamed.push("blames leaky/main.py:20".into());
            }
            row
        };
        assert!(!blaming(true).passed() && !blaming(false).passed());
    }
}
