//! Tables that can be sorted and searched: verdicts, lines, the census.

use caulk_core::{Comparison, ContainerChange, GpuUse, Sampled, TypeChange, VerdictUnit};
use maud::{Markup, html};

use crate::input::{LineRow, PageInput, VerdictRow};
use crate::room::Room;
use crate::words;

/// Characters of a name and of a line of source.
const NAME: usize = 100;
const CODE: usize = 120;
/// Processes of a GPU.
const PARTS: usize = 16;

/// Every verdict.
pub(crate) fn verdicts(rows: &[VerdictRow], room: Room) -> Markup {
    html! {
        div.scroll.tall tabindex="0" role="region" aria-label="Table of verdicts" { table.sortable {
            thead { tr { @for name in ["process", "series", "verdict", "rate", "interval", "last", "forecast"] {
                th scope="col" { (name) }
            } } }
            tbody { @for row in rows.iter().take(room.rows) { tr {
                th scope="row" { (row.process) } td { (row.series) }
                td { span.state.(row.state) { (row.state.replace('-', " ")) } }
                td { (row.rate) } td { (row.interval) } td { (row.last) } td { (row.forecast) }
            } } }
        } }
        (left_out(rows.len(), room.rows, "verdicts"))
    }
}

/// Every GPU, and what processes of the run had of it.
pub(crate) fn gpus(gpus: &[GpuUse], room: Room) -> Markup {
    let size = |bytes: u64| words::bytes(bytes as f64);
    html! {
        div.scroll.tall tabindex="0" role="region" aria-label="Table of GPUs" { table {
            thead { tr { @for name in ["device", "memory", "peak", "last", "processes of this run", "busy", "hottest"] {
                th scope="col" { (name) }
            } } }
            tbody { @for gpu in gpus.iter().take(room.rows) { tr {
                th scope="row" { "GPU " (gpu.device) " " span.quiet { (words::plain(&gpu.name, NAME)) } }
                td { (size(gpu.total_bytes)) } td { (size(gpu.peak_bytes)) } td { (size(gpu.last_bytes)) }
                td { @for part in gpu.processes.iter().take(PARTS) {
                    (words::process(&part.process)) ": " (size(part.peak_bytes))
                    @if part.torch_reserved_bytes > 0 { ", " (size(part.torch_reserved_bytes)) " of it torch's" }
                    br;
                } }
                td { @if let Some(busy) = gpu.busy_percent { (busy) " %" } }
                td { @if let Some(hottest) = gpu.hottest_celsius { (hottest) " °C" } }
            } } }
        } }
    }
}

/// What each line holds of the heap.
pub(crate) fn lines(input: &PageInput<'_>, room: Room) -> Markup {
    let grows = format!("per {}", input.per.0);
    let has_process = input.lines.iter().any(|row| !row.process.is_empty());
    html! {
        (search("lines", "Search files, functions and source"))
        div.scroll.tall tabindex="0" role="region" aria-label="Table of lines" { table.sortable id="lines-table" {
            thead { tr {
                th.number scope="col" { "live" } th.number scope="col" { (grows) } th.number scope="col" { "peak" }
                @if has_process { th scope="col" { "process" } }
                th scope="col" { "line" } th scope="col" { "source" }
            } }
            tbody { @for row in input.lines.iter().take(room.rows) { (line(row, input.per.1, has_process)) } }
        } }
        (left_out(input.lines.len(), room.rows, "lines with less memory"))
        p.caption {
            "Bytes that were allocated at a line and not given back. Estimated from samples: ± is the 95 % interval. \
             Memory that a library allocates counts for the line that called it."
        }
    }
}

fn line(row: &LineRow, factor: f64, has_process: bool) -> Markup {
    let growth = row
        .growth
        .map(|growth| Sampled { bytes: growth.bytes * factor, deviation: growth.deviation * factor });
    html! {
        tr {
            (amount(Some(row.live), false)) (amount(growth, true)) (amount(Some(row.peak), false))
            @if has_process { td { (if row.process.is_empty() { "main process" } else { row.process.as_str() }) } }
            td { code { (words::plain(&row.file, NAME)) ":" (row.line) } " " span.quiet { (words::plain(&row.function, NAME)) } }
            td { code { (words::plain(row.text.trim(), CODE)) } }
        }
    }
}

fn amount(value: Option<Sampled>, signed: bool) -> Markup {
    let sort = value.map_or(0.0, |value| value.bytes);
    html! {
        td.number data-value=(format!("{sort:.0}")) {
            @match value {
                None => "–",
                Some(value) => {
                    @if signed && value.bytes >= 0.0 { "+" }
                    (words::bytes(value.bytes))
                    @if value.margin() >= 1.0 { small { " ±" (words::bytes(value.margin())) } }
                }
            }
        }
    }
}

/// What changed between the first and the last census, by process.
pub(crate) fn census(changes: &[Comparison], room: Room) -> Markup {
    let each = (room.rows / changes.len().max(1)).max(4);
    html! {
        (search("census", "Search types and containers"))
        @for change in changes.iter().take(8) {
            @let owner = words::process(&change.process);
            h3 { (owner) " " span.quiet { (moments(change)) } }
            @if !change.containers.is_empty() { (containers(&change.containers, &owner, each)) }
            @if !change.types.is_empty() { (types(&change.types, &owner, each)) }
        }
        @if changes.len() > 8 { p.caption { (changes.len() - 8) " more processes are left out." } }
    }
}

fn moments(change: &Comparison) -> String {
    let unit = match change.moments[0].unit {
        VerdictUnit::Epoch => "epoch",
        VerdictUnit::Steps => "step",
        VerdictUnit::Seconds => "second",
    };
    let [from, to] = change.counted_at.unwrap_or(change.moments).map(|moment| moment.number);
    format!("from {unit} {from} to {unit} {to}")
}

fn containers(rows: &[ContainerChange], owner: &str, most: usize) -> Markup {
    html! {
        div.scroll.tall tabindex="0" role="region" aria-label={ "Table of containers of " (owner) } { table.sortable.searched {
            caption { "Containers that grew" }
            thead { tr { th scope="col" { "holder" } th scope="col" { "kind" } th.number scope="col" { "first" }
                th.number scope="col" { "last" } th.number scope="col" { "keeps alive" } } }
            tbody { @for row in rows.iter().take(most) { tr {
                td { @if row.holder.is_empty() { span.quiet { "no path found" } } @else { code { (words::plain(&row.holder, NAME)) } } }
                td { (words::plain(&row.kind, 40)) } (count(row.length[0])) (count(row.length[1]))
                td.number data-value=(format!("{:.0}", row.bytes.unwrap_or(0.0))) { (row.bytes.map_or("–".to_owned(), words::bytes)) }
            } } }
        } }
        (left_out(rows.len(), most, "containers"))
    }
}

fn types(rows: &[TypeChange], owner: &str, most: usize) -> Markup {
    let change = |pair: [Option<u64>; 2]| pair[1].unwrap_or(0) as f64 - pair[0].unwrap_or(0) as f64;
    html! {
        div.scroll.tall tabindex="0" role="region" aria-label={ "Table of types of " (owner) } { table.sortable.searched {
            caption { "Objects by type" }
            thead { tr { th scope="col" { "type" } th.number scope="col" { "first" } th.number scope="col" { "last" }
                th.number scope="col" { "bytes" } th.number scope="col" { "change" } } }
            tbody { @for row in rows.iter().take(most) { tr {
                td { code { (words::plain(&row.name, NAME)) } } (count(row.objects[0])) (count(row.objects[1]))
                td.number data-value=(row.bytes[1].unwrap_or(0)) { (row.bytes[1].map_or("–".to_owned(), |bytes| words::bytes(bytes as f64))) }
                td.number data-value=(format!("{:.0}", change(row.bytes))) { (caulk_core::Bytes::signed(change(row.bytes))) }
            } } }
        } }
        (left_out(rows.len(), most, "types"))
    }
}

fn count(value: Option<u64>) -> Markup {
    html! { td.number data-value=(value.map_or("-1".to_owned(), |value| value.to_string())) {
        (value.map_or("–".to_owned(), |value| value.to_string()))
    } }
}

fn search(section: &str, label: &str) -> Markup {
    html! {
        p.search { label { (label) " " input type="search" data-search=(section); } " " output aria-live="polite" {} }
    }
}

pub(crate) fn left_out(all: usize, shown: usize, what: &str) -> Markup {
    html! { @if all > shown { p.caption { (all - shown) " more " (what) " are left out." } } }
}
