//! Every process: a thumbnail of its memory, how long it lived, what it took.

use std::collections::BTreeMap;

use caulk_core::{ProcessRecord, ProcessRef, Recording, Role};
use maud::{Markup, html};

use crate::chart;
use crate::room::Room;
use crate::series::{Curve, Curves, Kind};
use crate::words;

/// Processes of one role and number, which followed one another.
struct Group<'a> {
    process: ProcessRef,
    records: Vec<&'a ProcessRecord>,
    resident: Option<&'a Curve>,
    in_use: Option<&'a Curve>,
}

/// The table of processes: the program's own first, then by role.
pub(crate) fn processes(recording: &Recording, curves: &Curves, room: Room) -> Markup {
    let mut groups: BTreeMap<(Role, u32), Vec<&ProcessRecord>> = BTreeMap::new();
    for record in &recording.processes {
        groups.entry((record.role, record.index)).or_default().push(record);
    }
    let curve = |kind: Kind| curves.host.iter().find(|curve| curve.kind == kind);
    let groups: Vec<Group<'_>> = groups
        .into_iter()
        .map(|((role, index), records)| Group {
            process: ProcessRef { role: role.as_str().into(), index, count: 1 },
            records,
            resident: curve(Kind::Resident(role, index)),
            in_use: curve(Kind::InUse(role, index)),
        })
        .collect();
    let most = groups
        .iter()
        .filter_map(|group| group.resident)
        .map(|curve| curve.fine.highest())
        .fold(1.0, f64::max);
    let shown = room.rows.min(64);
    html! {
        div.scroll.tall tabindex="0" role="region" aria-label="Table of processes" { table.sortable {
            thead { tr {
                th scope="col" { "process" } th scope="col" { "over time" } th.number scope="col" { "peak" }
                th.number scope="col" { "last" } th.number scope="col" { "in use" } th.number scope="col" { "lived" }
                th scope="col" { "program" } th.number scope="col" { "processes" }
            } }
            tbody { @for group in groups.iter().take(shown) { (row(group, most, curves, room)) } }
        } }
        @if groups.len() > shown { p.caption { (groups.len() - shown) " more processes are left out." } }
    }
}

fn row(group: &Group<'_>, most: f64, curves: &Curves, room: Room) -> Markup {
    let number = |value: Option<f64>| {
        html! {
            td.number data-value=(format!("{:.0}", value.unwrap_or(-1.0))) { (value.map_or("–".to_owned(), words::bytes)) }
        }
    };
    let first =
        group.records.iter().map(|record| curves.seconds(record.first_ns)).fold(f64::INFINITY, f64::min);
    let last = group.records.iter().map(|record| curves.seconds(record.last_ns)).fold(0.0, f64::max);
    let lived = (last - first).max(0.0);
    html! {
        tr {
            th scope="row" { (words::process(&group.process)) }
            td { @if let Some(curve) = group.resident {
                svg.thumbnail viewBox="0 0 600 1000" preserveAspectRatio="none" width="120" height="28" aria-hidden="true" {
                    path.curve.c0 d=(chart::thumbnail(&curve.fine, most)) {}
                }
            } }
            (number(group.resident.map(|curve| curve.fine.highest())))
            (number(group.resident.and_then(|curve| curve.fine.last())))
            (number(group.in_use.and_then(|curve| curve.fine.last())))
            td.number data-value=(format!("{lived:.0}")) { (words::time(lived)) }
            td { code { (words::plain(group.records.last().map_or("", |record| record.name.as_str()), room.text.min(40))) } }
            td.number data-value=(group.records.len()) { (group.records.len()) }
        }
    }
}
