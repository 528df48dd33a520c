//! A snapshot of the allocator, as `torch.cuda.memory._dump_snapshot` writes it.

use std::io::BufRead;

use crate::builder::{Builder, Item};
use crate::parts::{Event, Segment, SnapshotFrame, SnapshotSettings};
use crate::pickle::{self, PickleError};

/// Memory that the values of a pickle may take, in bytes.
const MEMORY: u64 = 3 << 29;

/// Why something is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The pickle cannot be read.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// It is a pickle of something else.
    #[error("the pickle has no list `segments`\nhint: `torch.cuda.memory._dump_snapshot` writes a snapshot")]
    NoSnapshot,
}

/// Segments of each device, and the history before if it was recorded.
#[derive(Debug)]
pub struct Snapshot {
    /// What was taken from the driver, of all devices.
    pub segments: Vec<Segment>,
    /// History of each device, oldest event first; empty if it was not recorded.
    pub traces: Vec<Vec<Event>>,
    /// How the allocator was set.
    pub settings: SnapshotSettings,
    builder: Builder,
}

impl Snapshot {
    /// Reads a snapshot. Nothing of it is run, and at most 1.5 GB of memory are taken.
    ///
    /// # Errors
    /// [`SnapshotError`] if it cannot be read, or is none.
    pub fn read(reader: impl BufRead) -> Result<Self, SnapshotError> {
        Self::read_within(reader, MEMORY)
    }

    fn read_within(reader: impl BufRead, memory: u64) -> Result<Self, SnapshotError> {
        let mut builder = Builder::default();
        let Item::Dict(top) = pickle::read(reader, &mut builder, memory)? else {
            return Err(SnapshotError::NoSnapshot);
        };
        let top = std::mem::take(&mut builder.dicts[top as usize]);
        if builder.value(&top, "segments").is_none() {
            return Err(SnapshotError::NoSnapshot);
        }
        let traces =
            builder.value(&top, "device_traces").map_or_else(Vec::new, |traces| histories(&builder, traces));
        let settings = builder.value(&top, "allocator_settings");
        let settings =
            settings.map_or_else(SnapshotSettings::default, |settings| settings_of(&builder, settings));
        let segments = std::mem::take(&mut builder.segments);
        (builder.events, builder.lists, builder.dicts) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { segments, traces, settings, builder })
    }

    /// Frames of a stack, innermost first.
    pub fn frames(&self, stack: u32) -> impl Iterator<Item = SnapshotFrame<'_>> {
        let frames = self.builder.stacks.get(stack).map_or(&[][..], AsRef::as_ref);
        frames.iter().filter_map(|frame| {
            let (file, line, function) = *self.builder.frames.get(*frame)?;
            let text = |number| self.builder.texts.get(number).map(AsRef::as_ref);
            Some(SnapshotFrame { file: text(file)?, line, function: text(function)? })
        })
    }
}

fn histories(builder: &Builder, traces: Item) -> Vec<Vec<Event>> {
    let event = |item: &Item| match *item {
        Item::Event(number) => Some(builder.events[number as usize]),
        _ => None,
    };
    let history = |trace: &Item| builder.list_of(*trace).iter().filter_map(event).collect();
    builder.list_of(traces).iter().map(history).collect()
}

fn settings_of(builder: &Builder, settings: Item) -> SnapshotSettings {
    let Item::Dict(number) = settings else { return SnapshotSettings::default() };
    let entries = &builder.dicts[number as usize];
    let value = |key| builder.value(entries, key);
    let divisions = value("roundup_power2_divisions").map_or_else(Vec::new, |divisions| match divisions {
        Item::Dict(number) => builder.dicts[number as usize].iter().map(|(_, each)| *each).collect(),
        _ => Vec::new(),
    });
    let divisions: Vec<i64> =
        divisions.iter().map(|each| if let Item::Integer(each) = each { *each } else { 0 }).collect();
    let same = divisions.first().filter(|first| divisions.iter().all(|each| each == *first));
    SnapshotSettings {
        configuration: value("PYTORCH_CUDA_ALLOC_CONF")
            .and_then(|text| builder.as_text(text))
            .unwrap_or_default()
            .to_owned(),
        expandable_segments: matches!(value("expandable_segments"), Some(Item::Boolean(true))),
        // No limit is the largest number that there is, or -1 if it is read as signed.
        max_split_size: builder.number(entries, "max_split_size").filter(|size| *size < i64::MAX as u64),
        garbage_collection_threshold: match value("garbage_collection_threshold") {
            Some(Item::Float(share)) if share > 0.0 => Some(share),
            _ => None,
        },
        roundup_power2_divisions: same.and_then(|same| u64::try_from(*same).ok()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _, repeat};

    use super::*;
    use crate::pickle::PickleProblem;

    #[test]
    fn endless_values_are_refused_before_memory_ends() {
        let endless = BufReader::new((&b"\x80\x02"[..]).chain(repeat(b'N')));
        let refused = Snapshot::read_within(endless, 1 << 16);
        assert!(
            matches!(&refused, Err(SnapshotError::Pickle(error)) if matches!(error.problem, PickleProblem::TooMuch)),
            "{refused:?}"
        );
    }
}
