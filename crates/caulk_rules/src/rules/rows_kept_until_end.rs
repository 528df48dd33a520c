//! Rows that are gathered step by step for one table at the end.

use caulk_core::{LeakClass, Scope, Severity};
use caulk_python::Analysis;
use caulk_python::program::{CallFact, GrowthCase, GrowthFact, ObjectId, Shape, Value};

use crate::advice::advice;
use crate::claims::Claim;
use crate::context::Context;
use crate::exposure::{Exposure, Pace};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::RowsKeptUntilEnd,
    severity: Severity::Warning,
    default: true,
    explanation: include_str!("rows_kept_until_end.md"),
    check,
};

/// What makes a table from rows.
pub(crate) const TABLES: &[&str] = &[
    "pandas.DataFrame",
    "pandas.DataFrame.from_records",
    "pandas.DataFrame.from_dict",
    "pandas.json_normalize",
    "polars.DataFrame",
    "polars.from_dicts",
    "pyarrow.Table.from_pylist",
];

fn check(cx: &mut Context<'_>) {
    let tables = cx.analysis.calls(TABLES);
    for claim in cx.growths() {
        let Claim { growth, case, exposure, .. } = claim;
        if let Some(table) = table_of_rows(cx.analysis, case, *exposure, &tables) {
            report(cx, growth, *exposure, case.object, table);
        }
    }
}

/// The table that a case's rows are gathered for, when that is made after all loops.
pub(crate) fn table_of_rows<'t>(
    analysis: &Analysis,
    case: &GrowthCase,
    exposure: Exposure,
    tables: &'t [CallFact],
) -> Option<&'t CallFact> {
    // A row for each epoch is nothing.
    if exposure.scope != Scope::Run || exposure.pace == Pace::Epoch || !is_row(analysis, &case.value) {
        return None;
    }
    tables.iter().find(|table| {
        table.argument.objects.contains(case.object) && !table.around.contains(&exposure.through)
    })
}

fn is_row(analysis: &Analysis, value: &Value) -> bool {
    value.objects.iter().any(|object| analysis.object(object).shape == Shape::Dict)
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
