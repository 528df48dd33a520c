//! `census`: what was counted at a boundary, one row per type or container.
//!
//! `what` tells them apart. `type`: `name` is the type, `count` its live objects, `bytes` their shallow bytes.
//! `container`: `name` is its type, `id` and `kind` say which and what, `count` is its length, `bytes` its own shallow
//! bytes. A census without types leaves one row `type` without a name.

use arrow_schema::ArrowError;
use caulk_core::AgentEvent;
use caulk_core::wire::{ContainerKind, ContainerLen, Message, TypeCount, Types};

use super::event::{code, event_columns, event_rows, events_of};
use crate::columns::{Cells, Columns};
use crate::record::{Record, Row};

/// One row: a message or a part of one.
#[derive(Clone, Copy)]
struct Line<'a> {
    order: u64,
    event: &'a AgentEvent,
    boundary: u32,
    container: Option<&'a ContainerLen>,
    name: Option<&'a str>,
    count: u64,
    bytes: u64,
}

fn lines<'a>(order: u64, event: &'a AgentEvent) -> Vec<Line<'a>> {
    let line = |boundary, container, name, count, bytes| Line {
        order,
        event,
        boundary,
        container,
        name,
        count,
        bytes,
    };
    match &event.message {
        Message::ContainerLen(c) => {
            vec![line(c.boundary, Some(c), Some(c.type_name.as_str()), c.len, c.shallow_bytes)]
        }
        Message::Types(types) if types.rows.is_empty() => vec![line(types.boundary, None, None, 0, 0)],
        Message::Types(types) => {
            let row = |t: &'a TypeCount| line(types.boundary, None, Some(t.name.as_str()), t.count, t.bytes);
            types.rows.iter().map(row).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn encode(rows: &[Row]) -> Columns {
    let lines: Vec<Line<'_>> = events_of(rows).flat_map(|(order, event)| lines(order, event)).collect();
    let what = |line: &Line<'_>| if line.container.is_some() { CONTAINER } else { TYPE };
    event_columns(lines.iter().map(|line| (line.order, line.event)))
        .u32("boundary", lines.iter().map(|line| line.boundary))
        .text("what", lines.iter().map(what))
        .some_text("name", lines.iter().map(|line| line.name))
        .u64("count", lines.iter().map(|line| line.count))
        .u64("bytes", lines.iter().map(|line| line.bytes))
        .some_u32("id", lines.iter().map(|line| Some(line.container?.id)))
        .some_text("kind", lines.iter().map(|line| Some(line.container?.kind.as_str())))
}

const CONTAINER: &str = "container";
const TYPE: &str = "type";

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let event = event_rows(cells)?;
    let (order, boundary) = (cells.u64("order")?, cells.u32("boundary")?);
    let (what, name, named) = (cells.text("what")?, cells.text("name")?, cells.present("name"));
    let (count, bytes) = (cells.u64("count")?, cells.u64("bytes")?);
    let (id, kind) = (cells.u32("id")?, cells.text("kind")?);
    for row in 0..cells.0.num_rows() {
        if what(row) == CONTAINER {
            let container = ContainerLen {
                boundary: boundary(row),
                id: id(row),
                kind: code(ContainerKind::from_name, kind(row)),
                type_name: name(row).to_owned(),
                len: count(row),
                shallow_bytes: bytes(row),
            };
            rows.push(event(row, container.into()));
            continue;
        }
        let counted = named(row).then(|| TypeCount {
            name: name(row).to_owned(),
            count: count(row),
            bytes: bytes(row),
        });
        // The rows of one census share its number.
        let last = rows.last_mut().filter(|last| last.order == order(row)).map(|last| &mut last.record);
        if let Some(Record::Event(AgentEvent { message: Message::Types(types), .. })) = last {
            types.rows.extend(counted);
        } else {
            let rows_of = counted.into_iter().collect();
            rows.push(event(row, Types { boundary: boundary(row), rows: rows_of }.into()));
        }
    }
    Ok(())
}
