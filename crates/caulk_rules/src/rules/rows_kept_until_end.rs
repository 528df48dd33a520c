//! Rows that are gathered step by step for one table at the end.

use caulk_core::{Certainty, LeakClass, Proof};
use caulk_python::Analysis;
use caulk_python::program::{CallFact, LoopId, LoopKind};

use crate::advice::advice;
use crate::claims::Claim;
use crate::context::Context;
use crate::proven::of_growth;
use crate::rule::Rule;
use crate::tables::{TABLES, table_of_rows};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::RowsKeptUntilEnd,
    default: true,
    explanation: include_str!("rows_kept_until_end.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let tables = cx.analysis.calls(TABLES);
    for claim in cx.growths() {
        let Claim { case, exposure, .. } = claim;
        if let Some(table) = table_of_rows(cx.analysis, case, *exposure, &tables)
            && !is_of_passes(cx.analysis, claim)
        {
            report(cx, claim, table);
        }
    }
}

/// Whether a turn of the loop around goes through batches itself: a row for each data set or seed takes little.
fn is_of_passes(analysis: &Analysis, claim: &Claim) -> bool {
    let inner = claim.exposure.inner;
    let Some(around) = analysis.a_loop(inner).at else { return false };
    let nested = |id: LoopId| {
        let inside = analysis.a_loop(id).at.is_some_and(|at| at != around && at.is_in(around));
        inside && analysis.a_loop(id).kind == LoopKind::Batches
    };
    let trains = analysis.trains(inner) && !analysis.is_step(inner);
    trains || analysis.loops(claim.growth.function).any(nested)
}

fn report(cx: &mut Context<'_>, claim: &Claim, table: &CallFact) {
    let Claim { growth, case, exposure, .. } = claim;
    let proof = of_growth(cx, claim);
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` gathers rows as Python objects, {}, only to make one table of them at the end",
        exposure.words()
    );
    let mut chain = vec![cx.link(growth.statement, "each row is a dict that stays in memory")];
    chain.extend(cx.made(case.object));
    chain.extend(cx.through(*exposure));
    chain.push(cx.link(table.at, "all rows become one table here"));
    let function = cx.function(growth.function).to_owned();
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    // All rows are kept, whatever they are held by.
    diagnostic.proof = Proof { outlives: Certainty::Proven, ..proof };
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Write each row when it is there, `csv.DictWriter(file, columns).writerow(row)`, and read the file at the end.",
    );
}
