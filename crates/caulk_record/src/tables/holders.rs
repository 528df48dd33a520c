//! `holders`: what keeps a container alive (`what` is `holder`) and what is in it (`contents`). The columns of the
//! one are null in the rows of the other.

use arrow_schema::ArrowError;
use caulk_core::wire::{Contents, Holder, MadeBy, Message, PathStep, StepKind, Trait};

use super::event::{code, event_columns, event_rows, events_of};
use crate::columns::{Cells, Columns};
use crate::record::Row;

const STEP: [&str; 3] = ["kind", "name", "type_name"];
const MADE: [&str; 2] = ["stack", "bytes"];
const HOLDER: &str = "holder";
const CONTENTS: &str = "contents";

pub(super) fn encode(rows: &[Row]) -> Columns {
    let is_ours = |message: &Message| matches!(message, Message::Holder(_) | Message::Contents(_));
    let events = events_of(rows).filter(move |(_, event)| is_ours(&event.message));
    let messages = || events.clone().map(|(_, event)| &event.message);
    let holders = || {
        messages().map(|message| match message {
            Message::Holder(holder) => Some(holder),
            _ => None,
        })
    };
    let contents = || {
        messages().map(|message| match message {
            Message::Contents(contents) => Some(contents),
            _ => None,
        })
    };
    // Numbers as text, as in every list of structures.
    let made: Vec<Option<Vec<[String; 2]>>> = contents()
        .map(|c| {
            Some(c?.made_by.iter().map(|made| [made.stack.to_string(), made.bytes.to_string()]).collect())
        })
        .collect();
    let made = made.iter().map(|made| {
        let texts = made.as_ref()?.iter().map(|[stack, bytes]| [stack.as_str(), bytes.as_str()]);
        Some(texts.collect::<Vec<_>>())
    });
    let traits: Vec<Option<Vec<String>>> =
        contents().map(|c| Some(c?.traits.iter().map(Trait::to_string).collect())).collect();
    let heads = || holders().zip(contents());
    event_columns(events.clone())
        .text("what", holders().map(|holder| if holder.is_some() { HOLDER } else { CONTENTS }))
        .u32("id", heads().map(|(h, c)| h.map(|h| h.id).or(c.map(|c| c.id)).unwrap_or(0)))
        .u32("boundary", heads().map(|(h, c)| h.map(|h| h.boundary).or(c.map(|c| c.boundary)).unwrap_or(0)))
        .structs("path", STEP, holders().map(|h| Some(h?.path.iter().map(step).collect())))
        .some_text("expression", holders().map(|h| Some(&h?.expression)))
        .some_text("function", holders().map(|h| Some(&h?.function)))
        .some_text("file", holders().map(|h| Some(&h?.file)))
        .some_u32("line", holders().map(|h| Some(h?.line)))
        .some_text("name", holders().map(|h| Some(&h?.name)))
        .some_text("owner_type", holders().map(|h| Some(&h?.owner_type)))
        .some_flag("complete", holders().map(|h| Some(h?.complete)))
        .some_u32("sampled", contents().map(|c| Some(c?.sampled)))
        .some_u32("copied", contents().map(|c| Some(c?.copied)))
        .counts("element_types", contents().map(|c| Some(c?.element_types.as_slice())))
        .some_u64("bytes_per_element", contents().map(|c| Some(c?.bytes_per_element)))
        .some_u64("tensor_bytes_per_element", contents().map(|c| Some(c?.tensor_bytes_per_element)))
        .some_u64("saved_bytes_per_element", contents().map(|c| Some(c?.saved_bytes_per_element)))
        .some_u64("viewed_bytes_per_element", contents().map(|c| Some(c?.viewed_bytes_per_element)))
        .some_u64("graph_nodes", contents().map(|c| Some(c?.graph_nodes)))
        .some_u64("saved_bytes", contents().map(|c| Some(c?.saved_bytes)))
        .some_flag("truncated", contents().map(|c| Some(c?.truncated)))
        .counts("node_types", contents().map(|c| Some(c?.node_types.as_slice())))
        .texts("traits", traits.iter().map(|traits| traits.as_deref()))
        .some_u64("tensors", contents().map(|c| Some(c?.tensors)))
        .some_u64("walked", contents().map(|c| Some(c?.walked)))
        .some_u64("walked_nodes", contents().map(|c| Some(c?.walked_nodes)))
        .some_u64("walked_storages", contents().map(|c| Some(c?.walked_storages)))
        .some_u64("walked_bytes", contents().map(|c| Some(c?.walked_bytes)))
        .structs("made_by", MADE, made)
        .some_u64("cuda_bytes_per_element", contents().map(|c| Some(c?.cuda_bytes_per_element)))
        .some_u64("saved_touched", contents().map(|c| Some(c?.saved_touched)))
        .some_u64("walked_touched", contents().map(|c| Some(c?.walked_touched)))
        .some_u64("opaque_nodes", contents().map(|c| Some(c?.opaque_nodes)))
        .some_u64("node_bytes", contents().map(|c| Some(c?.node_bytes)))
        .some_u64("device_bytes_per_element", contents().map(|c| Some(c?.device_bytes_per_element)))
}

fn step(step: &PathStep) -> [&str; 3] {
    [step.kind.as_str(), &step.name, &step.type_name]
}

fn step_of([kind, name, type_name]: [&str; 3]) -> PathStep {
    let kind = code(StepKind::from_name, kind);
    PathStep { kind, name: name.to_owned(), type_name: type_name.to_owned() }
}

fn made_of([stack, bytes]: [&str; 2]) -> MadeBy {
    MadeBy { stack: stack.parse().unwrap_or(u32::MAX), bytes: bytes.parse().unwrap_or(0) }
}

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let event = event_rows(cells)?;
    let (what, holder, contents) = (cells.text("what")?, holder(cells)?, contents(cells)?);
    rows.extend((0..cells.0.num_rows()).filter_map(|row| match what(row) {
        HOLDER => Some(event(row, holder(row).into())),
        CONTENTS => Some(event(row, contents(row).into())),
        _ => None,
    }));
    Ok(())
}

fn holder(cells: Cells<'_>) -> Result<impl Fn(usize) -> Holder + '_, ArrowError> {
    let (id, boundary, path) = (cells.u32("id")?, cells.u32("boundary")?, cells.structs("path", STEP)?);
    let (expression, function) = (cells.text("expression")?, cells.text("function")?);
    let (file, line, name) = (cells.text("file")?, cells.u32("line")?, cells.text("name")?);
    let (owner_type, complete) = (cells.text("owner_type")?, cells.flag("complete")?);
    Ok(move |row| Holder {
        id: id(row),
        boundary: boundary(row),
        path: path(row).into_iter().map(step_of).collect(),
        expression: expression(row).to_owned(),
        function: function(row).to_owned(),
        file: file(row).to_owned(),
        line: line(row),
        name: name(row).to_owned(),
        owner_type: owner_type(row).to_owned(),
        complete: complete(row),
    })
}

fn contents(cells: Cells<'_>) -> Result<impl Fn(usize) -> Contents + '_, ArrowError> {
    let (id, boundary, sampled) = (cells.u32("id")?, cells.u32("boundary")?, cells.u32("sampled")?);
    let (element_types, node_types) = (cells.counts("element_types")?, cells.counts("node_types")?);
    let (bytes, tensor) = (cells.u64("bytes_per_element")?, cells.u64("tensor_bytes_per_element")?);
    let saved = cells.u64("saved_bytes_per_element")?;
    let viewed = cells.u64("viewed_bytes_per_element")?;
    let copied = cells.u32("copied")?;
    let (graph_nodes, saved_bytes) = (cells.u64("graph_nodes")?, cells.u64("saved_bytes")?);
    let (truncated, traits) = (cells.flag("truncated")?, cells.texts("traits")?);
    let (tensors, walked) = (cells.u64("tensors")?, cells.u64("walked")?);
    let (nodes, storages) = (cells.u64("walked_nodes")?, cells.u64("walked_storages")?);
    let (cuda, device) = (cells.u64("cuda_bytes_per_element")?, cells.u64("device_bytes_per_element")?);
    let (saved_touched, walked_touched) =
        (cells.some_u64("saved_touched")?, cells.some_u64("walked_touched")?);
    let (opaque, node_bytes) = (cells.u64("opaque_nodes")?, cells.u64("node_bytes")?);
    let (walked_bytes, made_by) = (cells.u64("walked_bytes")?, cells.structs("made_by", MADE)?);
    Ok(move |row| Contents {
        id: id(row),
        boundary: boundary(row),
        sampled: sampled(row),
        copied: copied(row),
        element_types: element_types(row),
        bytes_per_element: bytes(row),
        tensor_bytes_per_element: tensor(row),
        saved_bytes_per_element: saved(row),
        viewed_bytes_per_element: viewed(row),
        graph_nodes: graph_nodes(row),
        saved_bytes: saved_bytes(row),
        truncated: truncated(row),
        node_types: node_types(row),
        traits: traits(row).iter().map(|text| Trait::from_text(text)).collect(),
        tensors: tensors(row),
        walked: walked(row),
        walked_nodes: nodes(row),
        walked_storages: storages(row),
        walked_bytes: walked_bytes(row),
        made_by: made_by(row).into_iter().map(made_of).collect(),
        cuda_bytes_per_element: cuda(row),
        device_bytes_per_element: device(row),
        // What an older version recorded was taken to be touched.
        saved_touched: saved_touched(row).unwrap_or_else(|| saved_bytes(row)),
        walked_touched: walked_touched(row).unwrap_or_else(|| walked_bytes(row)),
        opaque_nodes: opaque(row),
        node_bytes: node_bytes(row),
    })
}
