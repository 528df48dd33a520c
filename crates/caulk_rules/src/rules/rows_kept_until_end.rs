//! Rows that are gathered step by step for one table at the end.

use caulk_core::{LeakClass, Severity};
use caulk_python::program::{CallFact, GrowthFact, ObjectId};

use crate::advice::advice;
use crate::claims::Claim;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::rule::Rule;
use crate::tables::{TABLES, table_of_rows};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::RowsKeptUntilEnd,
    severity: Severity::Warning,
    default: true,
    explanation: include_str!("rows_kept_until_end.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let tables = cx.analysis.calls(TABLES);
    for claim in cx.growths() {
        let Claim { growth, case, exposure, .. } = claim;
        if let Some(table) = table_of_rows(cx.analysis, case, *exposure, &tables) {
            report(cx, growth, *exposure, case.object, table);
        }
    }
}

fn report(cx: &mut Context<'_>, growth: &GrowthFact, exposure: Exposure, object: ObjectId, table: &CallFact) {
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` gathers rows as Python objects, {}, only to make one table of them at the end",
        exposure.words()
    );
    let mut chain = vec![cx.link(growth.statement, "each row is a dict that stays in memory")];
    chain.extend(cx.made(object));
    chain.extend(cx.through(exposure));
    chain.push(cx.link(table.at, "all rows become one table here"));
    let function = cx.function(growth.function).to_owned();
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Write each row when it is there, `csv.DictWriter(file, columns).writerow(row)`, and read the file at the end.",
    );
}
