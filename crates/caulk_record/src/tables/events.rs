//! `events`: everything else that agents say. `message` is the exact message in the wire protocol; the other columns
//! are for people and queries.

use arrow_schema::ArrowError;
use caulk_core::wire::{Kin, LoopSite, Message};

use super::event::{event_columns, event_rows, events_of};
use crate::columns::{Cells, Columns};
use crate::record::{Row, decode_message};

/// What a message is about.
struct Summary<'a> {
    kind: &'static str,
    place: Option<(&'a str, u32, &'a str)>,
    text: String,
}

fn summary(message: &Message) -> Summary<'_> {
    match message {
        Message::Hello(m) => {
            plain("hello", format!("Python {}, {}, caulk {}", m.python, m.allocator, m.version))
        }
        Message::TraceHit(m) => {
            let by = format!("container {} grew by {} in {} times", m.id, m.growth, m.count);
            let text = format!("{by}; called from {}:{} {}", m.user_file, m.user_line, m.user_function);
            placed("trace-hit", &m.file, m.line, &m.function, text)
        }
        Message::TraceState(m) => plain("trace-state", format!("{}: {}", m.state, m.text)),
        Message::LoopSite(m) => placed("loop", &m.file, m.line, &m.function, loop_text(m)),
        Message::BackwardSite(m) => {
            placed("backward", &m.file, m.line, &m.function, format!("{} calls", m.count))
        }
        Message::Peak(m) => {
            let text = format!("{} bytes in use, {} at the boundary", m.in_use_bytes, m.baseline_bytes);
            placed("peak", &m.file, m.line, &m.function, text)
        }
        Message::Trim(m) => plain("trim", format!("{} -> {} bytes", m.before_bytes, m.after_bytes)),
        Message::GpuMade(m) => {
            plain("gpu-made", format!("{} bytes on GPUs from boundary {} to {}", m.bytes, m.from, m.to))
        }
        Message::Opened(m) => {
            let count = |kinds: &[Kin]| kinds.iter().map(|kin| kin.count).sum::<u32>();
            let [threads, files, segments] = [&m.threads, &m.files, &m.segments].map(|kinds| count(kinds));
            plain("opened", format!("{threads} threads, {files} files, {segments} segments"))
        }
        Message::Garbage(m) => plain("garbage", format!("{} objects, {} bytes", m.objects, m.bytes)),
        Message::Note(m) => plain("note", format!("{}: {}", m.code, m.text)),
        Message::Rank(m) => plain("rank", m.rank.to_string()),
        Message::Bye(m) => plain("bye", format!("{} steps, {} epochs", m.steps, m.epochs)),
        Message::Standing(m) => plain("standing", format!("{} steps, can save by: {}", m.steps, m.way)),
        Message::Answer(m) => {
            let text = format!("{}: {} bytes came back, {} {}", m.outcome, m.freed_bytes, m.path, m.text);
            plain("answer", text.trim_end().to_owned())
        }
        Message::GpuRefusal(m) => {
            let text =
                format!("GPU {}: {} bytes asked, {} reserved", m.device, m.asked_bytes, m.reserved_bytes);
            placed("gpu-refusal", &m.place.file, m.place.line, &m.place.function, text)
        }
        Message::GpuLedger(m) => {
            let (reserved, taken) = (m.reserved_bytes, m.total_bytes.saturating_sub(m.free_bytes));
            plain("gpu-ledger", format!("GPU {}: {reserved} bytes reserved, {taken} taken", m.device))
        }
        Message::Uncaught(m) => plain("uncaught", format!("{}: {}", m.types.join(" < "), m.text)),
        Message::Boundary(_) => plain("boundary", String::new()),
        Message::Types(_) | Message::ContainerLen(_) => plain("census", String::new()),
        Message::Holder(_) | Message::Contents(_) => plain("holder", String::new()),
        Message::HeapStack(_) | Message::HeapLive(_) => plain("heap", String::new()),
    }
}

fn loop_text(site: &LoopSite) -> String {
    format!("{} per {} {}", site.source, site.unit, site.variable).trim_end().to_owned()
}

fn plain(kind: &'static str, text: String) -> Summary<'static> {
    Summary { kind, place: None, text }
}

fn placed<'a>(kind: &'static str, file: &'a str, line: u32, function: &'a str, text: String) -> Summary<'a> {
    Summary { kind, place: Some((file, line, function)), text }
}

pub(super) fn encode(rows: &[Row]) -> Columns {
    let events = events_of(rows);
    let summaries: Vec<Summary<'_>> = events.clone().map(|(_, event)| summary(&event.message)).collect();
    let exact = |message: &Message| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    };
    event_columns(events.clone())
        .text("kind", summaries.iter().map(|s| s.kind))
        .some_text("file", summaries.iter().map(|s| Some(s.place?.0)))
        .some_u32("line", summaries.iter().map(|s| Some(s.place?.1)))
        .some_text("function", summaries.iter().map(|s| Some(s.place?.2)))
        .text("text", summaries.iter().map(|s| s.text.as_str()))
        .bytes("message", events.map(|(_, event)| exact(&event.message)))
}

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let (event, message) = (event_rows(cells)?, cells.bytes("message")?);
    let mut unknown = None;
    for row in 0..cells.0.num_rows() {
        match decode_message(message(row)) {
            Ok(message) => rows.push(event(row, message)),
            Err(error) => unknown = Some(error),
        }
    }
    // Said once for the batch; what could be read is in `rows` already.
    unknown.map_or(Ok(()), |error| Err(ArrowError::ParseError(error)))
}
