//! `heap`: the sampled heap profile. `what` tells four kinds of rows apart.
//!
//! `stack`: a stack that allocated, innermost frame first. `total`: what all stacks held at a boundary, with the mean
//! bytes between samples, and at the end of a process that was killed with what malloc had handed out by its own count. `live`: what one stack held there. `allocated`: what one
//! stack had allocated since the process began, given back or not. All of these are estimates, `deviation` is the standard
//! deviation of `bytes`.

use std::borrow::Cow;

use arrow_schema::ArrowError;
use caulk_core::AgentEvent;
use caulk_core::wire::{HeapAllocated, HeapFrame, HeapLive, HeapRow, HeapStack, Message};

use super::event::{event_columns, event_rows, events_of};
use crate::columns::{Cells, Columns};
use crate::record::{Record, Row};

const FRAME: [&str; 3] = ["file", "line", "function"];
const STACK: &str = "stack";
const TOTAL: &str = "total";
const LIVE: &str = "live";
const ALLOCATED: &str = "allocated";

/// One row: a message or a part of one.
#[derive(Clone, Copy)]
enum Line<'a> {
    Stack(&'a HeapStack),
    Total(&'a HeapLive),
    Live(&'a HeapLive, &'a HeapRow),
    Allocated(&'a HeapLive, &'a HeapAllocated),
}

impl<'a> Line<'a> {
    fn of(message: &'a Message) -> Vec<Self> {
        match message {
            Message::HeapStack(stack) => vec![Self::Stack(stack)],
            Message::HeapLive(live) => {
                let rows = live.rows.iter().map(|row| Self::Live(live, row));
                let allocated = live.allocated.iter().map(|one| Self::Allocated(live, one));
                std::iter::once(Self::Total(live)).chain(rows).chain(allocated).collect()
            }
            _ => Vec::new(),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Stack(_) => STACK,
            Self::Total(_) => TOTAL,
            Self::Live(..) => LIVE,
            Self::Allocated(..) => ALLOCATED,
        }
    }

    fn stack(self) -> Option<&'a HeapStack> {
        if let Self::Stack(stack) = self { Some(stack) } else { None }
    }

    fn live(self) -> Option<&'a HeapLive> {
        match self {
            Self::Stack(_) => None,
            Self::Total(live) | Self::Live(live, _) | Self::Allocated(live, _) => Some(live),
        }
    }

    fn total(self) -> Option<&'a HeapLive> {
        if let Self::Total(live) = self { Some(live) } else { None }
    }

    fn row(self) -> Option<&'a HeapRow> {
        if let Self::Live(_, row) = self { Some(row) } else { None }
    }

    fn id(self) -> Option<u32> {
        match self {
            Self::Stack(stack) => Some(stack.id),
            Self::Total(_) => None,
            Self::Live(_, row) => Some(row.id),
            Self::Allocated(_, one) => Some(one.id),
        }
    }

    fn bytes(self) -> Option<u64> {
        match self {
            Self::Stack(_) => None,
            Self::Total(live) => Some(live.bytes),
            Self::Live(_, row) => Some(row.bytes),
            Self::Allocated(_, one) => Some(one.bytes),
        }
    }

    fn deviation(self) -> Option<u64> {
        match self {
            Self::Total(live) => Some(live.deviation),
            Self::Live(_, row) => Some(row.deviation),
            Self::Stack(_) | Self::Allocated(..) => None,
        }
    }
}

pub(super) fn encode(rows: &[Row]) -> Columns {
    let of_event = |(order, event): (u64, &'_ AgentEvent)| (order, event.clone());
    let events: Vec<(u64, AgentEvent)> = events_of(rows).map(of_event).collect();
    let lines: Vec<(u64, &AgentEvent, Line<'_>)> = events
        .iter()
        .flat_map(|(order, event)| {
            Line::of(&event.message).into_iter().map(move |line| (*order, event, line))
        })
        .collect();
    let numbers: Vec<Option<Vec<Cow<'_, str>>>> = lines
        .iter()
        .map(|(.., line)| {
            Some(line.stack()?.frames.iter().map(|frame| frame.line.to_string().into()).collect())
        })
        .collect();
    let frames = lines.iter().zip(&numbers).map(|((.., line), numbers)| {
        let pairs = line.stack()?.frames.iter().zip(numbers.as_ref()?);
        Some(pairs.map(|(frame, number)| [frame.file.as_str(), number, &frame.function]).collect())
    });
    let each = || lines.iter().map(|(.., line)| *line);
    event_columns(lines.iter().map(|(order, event, _)| (*order, *event)))
        .text("what", each().map(Line::what))
        .some_u32("id", each().map(Line::id))
        .some_u32("boundary", each().map(|line| Some(line.live()?.boundary)))
        .some_u32("flags", each().map(|line| Some(line.stack()?.flags)))
        .structs("frames", FRAME, frames)
        .some_u64("interval", each().map(|line| Some(line.live()?.interval)))
        .some_u64("bytes", each().map(Line::bytes))
        .some_u64("blocks", each().map(|line| Some(line.row()?.blocks)))
        .some_u64("deviation", each().map(Line::deviation))
        .some_u64("malloc_bytes", each().map(|line| Some(line.total()?.malloc_bytes)))
        .some_u64("malloc_blocks", each().map(|line| Some(line.total()?.malloc_blocks)))
        .some_u64("arena_bytes", each().map(|line| Some(line.total()?.arena_bytes)))
        .some_u64("allocated_bytes", each().map(|line| Some(line.total()?.allocated_bytes)))
}

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let (event, order, what) = (event_rows(cells)?, cells.u64("order")?, cells.text("what")?);
    let (id, boundary, flags) = (cells.u32("id")?, cells.u32("boundary")?, cells.u32("flags")?);
    let (frames, interval) = (cells.structs("frames", FRAME)?, cells.u64("interval")?);
    let (bytes, blocks, deviation) = (cells.u64("bytes")?, cells.u64("blocks")?, cells.u64("deviation")?);
    let (malloc, malloc_blocks) = (cells.u64("malloc_bytes")?, cells.u64("malloc_blocks")?);
    let (arenas, allocated) = (cells.u64("arena_bytes")?, cells.u64("allocated_bytes")?);
    let frame = |[file, line, function]: [&str; 3]| HeapFrame {
        file: file.to_owned(),
        line: line.parse().unwrap_or(0),
        function: function.to_owned(),
    };
    for row in 0..cells.0.num_rows() {
        match what(row) {
            STACK => {
                let frames = frames(row).into_iter().map(frame).collect();
                rows.push(event(row, HeapStack { id: id(row), flags: flags(row), frames }.into()));
            }
            TOTAL => {
                let live = HeapLive {
                    boundary: boundary(row),
                    interval: interval(row),
                    bytes: bytes(row),
                    deviation: deviation(row),
                    rows: Vec::new(),
                    malloc_bytes: malloc(row),
                    malloc_blocks: malloc_blocks(row),
                    arena_bytes: arenas(row),
                    allocated_bytes: allocated(row),
                    allocated: Vec::new(),
                };
                rows.push(event(row, live.into()));
            }
            kind @ (LIVE | ALLOCATED) => {
                // The rows of one profile share its number.
                let last = rows.last_mut().filter(|last| last.order == order(row));
                let last = last.map(|last| &mut last.record);
                if let Some(Record::Event(AgentEvent { message: Message::HeapLive(live), .. })) = last {
                    let (id, bytes) = (id(row), bytes(row));
                    if kind == LIVE {
                        let (blocks, deviation) = (blocks(row), deviation(row));
                        live.rows.push(HeapRow { id, bytes, blocks, deviation });
                    } else {
                        live.allocated.push(HeapAllocated { id, bytes });
                    }
                }
            }
            // Another version's.
            _ => {}
        }
    }
    Ok(())
}
