//! `processes`: the tree. While it runs, a process has a row for every change that was seen; the last one counts.

use arrow_schema::ArrowError;
use caulk_core::{ProcessRecord, Role};

use crate::columns::{Cells, Columns};
use crate::record::{Record, Row};

pub(super) fn encode(rows: &[Row]) -> Columns {
    let processes = rows.iter().filter_map(|row| match &row.record {
        Record::Process(process) => Some((row.order, process)),
        _ => None,
    });
    let each = || processes.clone().map(|(_, process)| process);
    Columns::default()
        .u64("order", processes.clone().map(|(order, _)| order))
        .u32("pid", each().map(|p| p.pid))
        .u32("parent", each().map(|p| p.parent))
        .text("role", each().map(|p| p.role.as_str()))
        .u32("index", each().map(|p| p.index))
        .text("name", each().map(|p| p.name.as_str()))
        .u64("first_ns", each().map(|p| p.first_ns))
        .u64("last_ns", each().map(|p| p.last_ns))
        .flag("agent", each().map(|p| p.agent))
}

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let (order, pid, parent) = (cells.u64("order")?, cells.u32("pid")?, cells.u32("parent")?);
    let (role, index, name) = (cells.text("role")?, cells.u32("index")?, cells.text("name")?);
    let (first_ns, last_ns, agent) = (cells.u64("first_ns")?, cells.u64("last_ns")?, cells.flag("agent")?);
    rows.extend((0..cells.0.num_rows()).map(|row| {
        let process = ProcessRecord {
            pid: pid(row),
            parent: parent(row),
            role: role_of(role(row)),
            index: index(row),
            name: name(row).to_owned(),
            first_ns: first_ns(row),
            last_ns: last_ns(row),
            agent: agent(row),
        };
        Row { order: order(row), record: Record::Process(process) }
    }));
    Ok(())
}

fn role_of(name: &str) -> Role {
    let known = [Role::Main, Role::Worker, Role::Rank];
    known.into_iter().find(|role| role.as_str() == name).unwrap_or(Role::Other)
}
