//! What `caulk run` may cost, and whether a benchmark has met it. Pure arithmetic.

use crate::bench::contender::{ALL, CAULK, Maker};
use crate::bench::ratio::{self, Series, Spread};

/// CPU time of the whole tree, on runs of a minute, to that of the plain program.
const CPU_RATIO: f64 = 1.03;
/// Memory in the program, in MB.
const MEMORY: f64 = 15.0;
/// Of the overhead of the best rival.
const PART: f64 = 1.0 / 3.0;

/// A line for each goal that this benchmark can judge. The first series is the plain program's. `kept`: the same where malloc
/// gives no page back, so that only live memory differs.
pub(crate) fn render(series: &[Series], kept: &[Series]) -> String {
    let Some((plain, others)) = series.split_first() else {
        return String::new();
    };
    let Some(caulk) = others.iter().find(|series| series.name == CAULK.name) else {
        return String::new();
    };
    let overhead = |other: &Series| {
        ratio::paired(plain, other, ratio::cpu, |with, base| with / base - 1.0).map(Spread::median)
    };
    let added = |[plain, caulk]: [&Series; 2]| {
        ratio::paired(plain, caulk, ratio::peak, |with, base| with - base).map(Spread::median)
    };
    let memory = |added: f64, how: &str| {
        judged(&format!("peak RSS {added:+.1} MB of at most {MEMORY} MB{how}"), added <= MEMORY)
    };
    let kept = kept.split_first().and_then(|(plain, others)| added([plain, others.first()?]));
    let rivals = others.iter().filter(|series| is_rival(series));
    let best =
        rivals.filter_map(|rival| Some((overhead(rival)?, rival.name))).min_by(|a, b| a.0.total_cmp(&b.0));
    let lines = [
        overhead(caulk).map(|cpu| {
            judged(&format!("CPU time {:.3}x of at most {CPU_RATIO}x", 1.0 + cpu), 1.0 + cpu <= CPU_RATIO)
        }),
        added([plain, caulk]).map(|added| memory(added, "")),
        kept.map(|added| memory(added, " where malloc gives no page back")),
        overhead(caulk).zip(best).map(|(cpu, (least, rival))| {
            let (cpu_percent, least_percent) = (100.0 * cpu, 100.0 * least);
            let text =
                format!("{cpu_percent:+.1} % CPU, at most a third of {least_percent:+.1} % of {rival}");
            judged(&text, cpu <= PART * least)
        }),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn judged(text: &str, met: bool) -> String {
    format!("goal: {text}: {}", if met { "met" } else { "MISSED" })
}

fn is_rival(series: &Series) -> bool {
    ALL.iter().any(|contender| contender.name == series.name && contender.maker == Maker::Rival)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::ratio::Sample;
    use crate::bench::usage::Usage;

    fn series(name: &'static str, milliseconds: u64, mb: u64) -> Series {
        let usage = Usage {
            cpu: Duration::from_millis(milliseconds),
            wall: Duration::from_millis(milliseconds),
            peak_rss_bytes: mb * 1_000_000,
            tree_rss_bytes: mb * 1_000_000,
            faults: 1,
        };
        Series { name, rounds: vec![Some(Sample { usage, written: None })] }
    }

    const KEPT: &str = "goal: peak RSS +12.0 MB of at most 15 MB where malloc gives no page back: met";

    fn check(caulk: (u64, u64), rivals: &[(&'static str, u64)], expected: &[&str]) {
        let all = [series("no profiler", 10_000, 600), series("caulk run", caulk.0, caulk.1)].into_iter();
        let all: Vec<_> = all.chain(rivals.iter().map(|(name, time)| series(name, *time, 900))).collect();
        let kept = [series("no profiler", 10_000, 600), series("caulk run", 10_000, 612)];
        assert_eq!(render(&all, &kept).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn goals_are_judged_by_medians_and_by_the_best_rival_alone() {
        check(
            (10_200, 610),
            &[("memray run", 11_000), ("fil-profile", 20_000), ("scalene --cpu-only", 10_010)],
            &[
                "goal: CPU time 1.020x of at most 1.03x: met",
                "goal: peak RSS +10.0 MB of at most 15 MB: met",
                KEPT,
                "goal: +2.0 % CPU, at most a third of +10.0 % of memray run: met",
            ],
        );
        check(
            (10_400, 620),
            &[("memray run", 11_000)],
            &[
                "goal: CPU time 1.040x of at most 1.03x: MISSED",
                "goal: peak RSS +20.0 MB of at most 15 MB: MISSED",
                KEPT,
                "goal: +4.0 % CPU, at most a third of +10.0 % of memray run: MISSED",
            ],
        );
    }

    #[test]
    fn without_rivals_nothing_is_said_of_them() {
        check(
            (10_200, 610),
            &[],
            &[
                "goal: CPU time 1.020x of at most 1.03x: met",
                "goal: peak RSS +10.0 MB of at most 15 MB: met",
                KEPT,
            ],
        );
    }
}
