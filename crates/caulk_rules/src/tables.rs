//! Tables that are made of rows which were gathered before: what makes them, and which rows go into one.

use caulk_core::Scope;
use caulk_python::Analysis;
use caulk_python::program::{CallFact, GrowthCase, Shape, Value};

use crate::exposure::{Exposure, Pace};

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
