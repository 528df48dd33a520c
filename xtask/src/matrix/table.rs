//! The table in `docs/versions.md`. Pure: text in, text out.

use crate::console::failure;
use crate::matrix::cell::{Cell, Outcome};

const BEGIN: &str = "<!-- matrix: begin -->\n";
const END: &str = "<!-- matrix: end -->";

/// The page, with these results in place of the old ones.
///
/// # Errors
/// If the page has no place for them.
pub(crate) fn into_page(page: &str, date: &str, cells: &[Cell]) -> anyhow::Result<String> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| {
        failure(
            "docs/versions.md has no place for results",
            format!("put `{BEGIN}` and `{END}` into it again"),
        )
    })?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table(date, cells)))
}

fn table(date: &str, cells: &[Cell]) -> String {
    let head = "| CPython | torch | selftest and core tests | date |\n|---|---|---|---|\n".to_owned();
    cells.iter().fold(head, |text, cell| text + &row(date, cell))
}

fn row(date: &str, Cell { python, torch, outcome }: &Cell) -> String {
    let torch = torch.as_deref().unwrap_or("none");
    match outcome {
        Outcome::Ran(failed) if failed.is_empty() => format!("| {python} | {torch} | pass | {date} |\n"),
        Outcome::Ran(failed) => format!("| {python} | {torch} | FAIL: {} | {date} |\n", failed.join(", ")),
        Outcome::NotRun(why) => {
            format!("| {python} | | not run: {} | {date} |\n", why.replace('|', "\\|"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn cell(python: &str, outcome: Outcome) -> Cell {
        Cell { python: python.into(), torch: None, outcome }
    }

    #[test]
    fn old_results_are_replaced_and_the_rest_stays() {
        let cells = [
            cell("3.12.1", Outcome::Ran(Vec::new())),
            cell("3.13.0", Outcome::Ran(vec!["core tests".into()])),
            cell("3.15", Outcome::NotRun("no interpreter".into())),
        ];
        let page = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let expected = "before\n<!-- matrix: begin -->\n\
            | CPython | torch | selftest and core tests | date |\n|---|---|---|---|\n\
            | 3.12.1 | none | pass | today |\n\
            | 3.13.0 | none | FAIL: core tests | today |\n\
            | 3.15 | | not run: no interpreter | today |\n\
            <!-- matrix: end -->\nafter\n";
        assert_eq!(into_page(&page, "today", &cells).unwrap(), expected);
        assert!(into_page("no place", "today", &cells).is_err());
    }

    #[test]
    fn the_page_has_a_place() {
        assert!(into_page(include_str!("../../../docs/versions.md"), "today", &[]).is_ok());
    }
}
