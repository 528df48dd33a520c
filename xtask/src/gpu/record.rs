//! The part of `docs/gpu.md` that lists the runs on each device, with dates. Pure: text in, text out.

use crate::console::failure;
use crate::gpu::results::{Judgement, Machine};

const BEGIN: &str = "<!-- cargo xtask gpu-check: begin -->\n";
const END: &str = "<!-- cargo xtask gpu-check: end -->";

/// The page, with the results of this run in place of the old ones.
pub(crate) fn into_page(
    page: &str,
    machine: &Machine,
    results: &[(String, Judgement)],
) -> anyhow::Result<String> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| {
        failure("docs/gpu.md has no place for results", format!("put `{BEGIN}` and `{END}` into it again"))
    })?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", section(machine, results)))
}

/// The results for people: the device, then every program.
pub(crate) fn section(machine: &Machine, results: &[(String, Judgement)]) -> String {
    let count = |is: fn(&Judgement) -> bool| results.iter().filter(|(_, result)| is(result)).count();
    let (right, wrong) =
        (count(|r| matches!(r, Judgement::Right(_))), count(|r| matches!(r, Judgement::Wrong(_))));
    let not_run = results.len() - right - wrong;
    let Machine { device, python, torch, date } = machine;
    let mut text = format!(
        "On {date}, {device}, torch {torch}, Python {python}: of {} programs moved to the device {right} were judged \
         rightly, {wrong} wrongly; {not_run} cannot be moved.\n\n| program | what came of it |\n|---|---|\n",
        results.len()
    );
    let row = |(name, result): &(String, Judgement)| {
        let told = match result {
            Judgement::Right(series) if series.is_empty() => "right".to_owned(),
            Judgement::Right(series) => format!("right, by `{series}`"),
            Judgement::Wrong(why) => format!("WRONG: {}", cell(why)),
            Judgement::NotRun(why) => cell(why),
        };
        format!("| {name} | {told} |\n")
    };
    text.extend(results.iter().map(row));
    text
}

/// Text that stays within its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn machine() -> Machine {
        Machine {
            device: "NVIDIA H200".into(),
            python: "3.12.3".into(),
            torch: "2.11.0".into(),
            date: "2026-11-22".into(),
        }
    }

    #[test]
    fn results_replace_what_the_page_says() {
        let results = [
            ("kept-leaky".to_owned(), Judgement::Right("cuda_allocated".into())),
            ("kept-clean".to_owned(), Judgement::Wrong("error | x\nat y".into())),
            (
                "workers-leaky".to_owned(),
                Judgement::NotRun("cannot be moved: no CUDA in forked workers".into()),
            ),
        ];
        let page = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let text = into_page(&page, &machine(), &results).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("\nafter\n") && !text.contains("old"));
        assert!(text.contains("NVIDIA H200") && text.contains("| kept-leaky | right, by `cuda_allocated` |"));
        assert!(text.contains("WRONG: error \\| x at y |"), "{text}");
        assert!(
            text.contains("of 3 programs moved to the device 1 were judged rightly, 1 wrongly; 1 cannot")
        );
        assert_eq!(into_page(&text, &machine(), &results).unwrap(), text);
        assert!(into_page("nothing", &machine(), &results).is_err());
    }

    #[test]
    fn the_page_has_a_place_for_results() {
        let page = include_str!("../../../docs/gpu.md");
        assert!(into_page(page, &machine(), &[]).is_ok());
    }
}
