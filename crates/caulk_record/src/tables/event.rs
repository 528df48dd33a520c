//! What every table of events has in common: the columns that it begins with, and codes by name.

use arrow_schema::ArrowError;
use caulk_core::AgentEvent;
use caulk_core::wire::Message;

use crate::columns::{Cells, Columns};
use crate::record::{Record, Row};

/// The columns that every table of events begins with.
pub(crate) fn event_columns<'a>(events: impl Iterator<Item = (u64, &'a AgentEvent)> + Clone) -> Columns {
    Columns::default()
        .u64("order", events.clone().map(|(order, _)| order))
        .u64("time_ns", events.clone().map(|(_, event)| event.time_ns))
        .u32("pid", events.map(|(_, event)| event.pid))
}

/// Reads what [`event_columns`] wrote, and adds the message.
pub(crate) fn event_rows(cells: Cells<'_>) -> Result<impl Fn(usize, Message) -> Row + '_, ArrowError> {
    let (order, time_ns, pid) = (cells.u64("order")?, cells.u64("time_ns")?, cells.u32("pid")?);
    Ok(move |row, message| {
        let event = AgentEvent { time_ns: time_ns(row), pid: pid(row), message };
        Row { order: order(row), record: Record::Event(event) }
    })
}

/// The events among the rows.
pub(crate) fn events_of(rows: &[Row]) -> impl Iterator<Item = (u64, &AgentEvent)> + Clone {
    rows.iter().filter_map(|row| match &row.record {
        Record::Event(event) => Some((row.order, event)),
        _ => None,
    })
}

/// The name's value; a name of a later version reads as the default.
pub(crate) fn code<T: Default>(from_name: impl Fn(&str) -> Option<T>, name: &str) -> T {
    from_name(name).unwrap_or_default()
}
