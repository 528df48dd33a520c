//! Rows that are gathered step by step for one table at the end.

use caulk_core::{LeakClass, Scope, Severity};
use caulk_python::program::{CallFact, GrowthCase, GrowthFact, ObjectId, Shape, Value};

use crate::advice::advice;
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
const TABLES: &[&str] = &[
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
    if tables.is_empty() {
        return;
    }
    for growth in cx.analysis.growths() {
        let found = growth.cases.iter().find_map(|case| gathered(cx, case, &tables));
        if let Some((exposure, object, table)) = found {
            report(cx, &growth, exposure, object, table);
        }
    }
}

/// The table that a case's rows are gathered for, when that is made after all loops.
fn gathered<'t>(
    cx: &Context<'_>,
    case: &GrowthCase,
    tables: &'t [CallFact],
) -> Option<(Exposure, ObjectId, &'t CallFact)> {
    if !is_row(cx, &case.value) {
        return None;
    }
    let exposure = Exposure::of(cx.analysis, &case.duration, cx.analysis.holder(case.object))?;
    // A row for each epoch is nothing.
    if exposure.scope != Scope::Run || exposure.pace == Pace::Epoch {
        return None;
    }
    let table = tables.iter().find(|table| {
        table.argument.objects.contains(case.object) && !table.around.contains(&exposure.through)
    })?;
    Some((exposure, case.object, table))
}

fn is_row(cx: &Context<'_>, value: &Value) -> bool {
    value.objects.iter().any(|object| cx.analysis.object(object).shape == Shape::Dict)
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
