//! One record of any kind with its number, and its bytes in the ring.

use caulk_core::wire::{FrameBuffer, Message};
use caulk_core::{AgentEvent, Counted, GpuSample, ProcessRecord, Sample, SystemSample};

/// Anything that is recorded after the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Sample(Sample),
    System(SystemSample),
    Process(ProcessRecord),
    Event(AgentEvent),
    Gpu(GpuSample),
}

/// A record with its number in the run, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) order: u64,
    pub(crate) record: Record,
}

impl Record {
    /// When it was made: `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) fn time_ns(&self) -> u64 {
        match self {
            Self::Sample(sample) => sample.time_ns,
            Self::System(sample) => sample.time_ns,
            Self::Process(process) => process.last_ns.max(process.first_ns),
            Self::Event(event) => event.time_ns,
            Self::Gpu(sample) => sample.time_ns,
        }
    }
}

impl Row {
    /// Bytes of the row in the ring: numbers as groups of seven bits, absent ones left out.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        put(&mut out, self.order);
        match &self.record {
            Record::Sample(s) => {
                out.push(0);
                let fixed = [s.time_ns, s.pid.into(), s.rss_bytes, s.shared_bytes].map(Some);
                let counts = [s.threads.map(u64::from), s.fds.map(u64::from), s.cpu_ns];
                let sizes = [s.pss_bytes, s.private_dirty_bytes, s.swap_bytes];
                let counted = s.counted.map(|c| [c.malloc_bytes, c.blocks, c.arena_bytes].map(Some));
                let counted = counted.unwrap_or_default();
                let limited = [s.address_space_bytes, s.data_bytes];
                put_all(&mut out, &[fixed.as_slice(), &sizes, &counts, &counted, &limited].concat());
            }
            Record::System(s) => {
                out.push(1);
                let fixed = [s.time_ns, s.available_bytes, s.tree_rss_bytes, s.processes.into()].map(Some);
                put_all(
                    &mut out,
                    &[fixed.as_slice(), &[s.cgroup_bytes, s.cgroup_cache_bytes, s.shm_used_bytes]].concat(),
                );
            }
            Record::Process(process) => {
                out.push(2);
                out.extend(serde_json::to_vec(process).unwrap_or_default());
            }
            Record::Event(event) => {
                out.push(3);
                put(&mut out, event.time_ns);
                put(&mut out, event.pid.into());
                event.message.encode(&mut out);
            }
            Record::Gpu(sample) => {
                out.push(4);
                out.extend(serde_json::to_vec(sample).unwrap_or_default());
            }
        }
        out
    }

    /// The row of these bytes; `None` if they are of a later version or not ours.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let input = &mut bytes;
        let order = get(input)?;
        let (&tag, rest) = input.split_first()?;
        *input = rest;
        let record = match tag {
            0 => Record::Sample(sample(get_all(input)?)?),
            1 => Record::System(system(get_all(input)?)?),
            2 => Record::Process(serde_json::from_slice(input).ok()?),
            3 => {
                let (time_ns, pid) = (get(input)?, u32::try_from(get(input)?).ok()?);
                Record::Event(AgentEvent { time_ns, pid, message: decode_message(input).ok()? })
            }
            4 => Record::Gpu(serde_json::from_slice(input).ok()?),
            _ => return None,
        };
        Some(Self { order, record })
    }
}

/// The message in these bytes, length included. Fields that later versions of the protocol added to its end are taken
/// as zero where an older version wrote it: zero bytes are the default of every field.
pub(crate) fn decode_message(bytes: &[u8]) -> Result<Message, String> {
    let mut buffer = FrameBuffer::default();
    buffer.extend(bytes);
    let frame = buffer.next_frame().map_err(|error| error.to_string())?;
    let mut frame = frame.ok_or("message stops in the middle")?;
    Message::decode(&frame).or_else(|error| {
        frame.extend_from_slice(&[0; 64]);
        Message::decode(&frame).map_err(|_| error.to_string())
    })
}

fn sample(fields: [Option<u64>; 15]) -> Option<Sample> {
    let [
        time_ns,
        pid,
        rss,
        shared,
        pss,
        private_dirty,
        swap,
        threads,
        fds,
        cpu_ns,
        counted @ ..,
        address,
        data,
    ] = fields;
    let [malloc, blocks, arenas] = counted;
    let counted = malloc.zip(blocks).zip(arenas).map(|((malloc_bytes, blocks), arena_bytes)| Counted {
        malloc_bytes,
        blocks,
        arena_bytes,
    });
    Some(Sample {
        time_ns: time_ns?,
        pid: pid?.try_into().ok()?,
        rss_bytes: rss?,
        shared_bytes: shared?,
        pss_bytes: pss,
        private_dirty_bytes: private_dirty,
        swap_bytes: swap,
        threads: threads.and_then(|count| count.try_into().ok()),
        fds: fds.and_then(|count| count.try_into().ok()),
        cpu_ns,
        counted,
        address_space_bytes: address,
        data_bytes: data,
    })
}

fn system(fields: [Option<u64>; 7]) -> Option<SystemSample> {
    let [time_ns, available, tree_rss, processes, cgroup, cache, shm_used] = fields;
    Some(SystemSample {
        time_ns: time_ns?,
        cgroup_bytes: cgroup,
        cgroup_cache_bytes: cache,
        available_bytes: available?,
        tree_rss_bytes: tree_rss?,
        processes: processes?.try_into().ok()?,
        shm_used_bytes: shm_used,
    })
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A mask of those that are present, then those.
fn put_all(out: &mut Vec<u8>, fields: &[Option<u64>]) {
    let mask = fields.iter().enumerate().map(|(bit, field)| u64::from(field.is_some()) << bit).sum();
    put(out, mask);
    for field in fields.iter().flatten() {
        put(out, *field);
    }
}

fn get_all<const N: usize>(input: &mut &[u8]) -> Option<[Option<u64>; N]> {
    let mask = get(input)?;
    let mut fields = [None; N];
    for (bit, field) in fields.iter_mut().enumerate() {
        if mask >> bit & 1 == 1 {
            *field = Some(get(input)?);
        }
    }
    Some(fields)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use caulk_core::Slowed;
    use caulk_core::wire::{Boundary, Bye, Note};

    fn check(record: Record) {
        let row = Row { order: 300, record };
        let bytes = row.encode();
        assert_eq!(Row::decode(&bytes), Some(row));
        for cut in 0..bytes.len() {
            let _ = Row::decode(&bytes[..cut]);
        }
    }

    #[test]
    fn every_kind_comes_back() {
        let counted = Some(Counted { malloc_bytes: u64::MAX, blocks: 0, arena_bytes: 1 << 20 });
        check(Record::Sample(Sample { time_ns: u64::MAX, pid: 7, fds: Some(0), ..Sample::default() }));
        check(Record::Sample(Sample { pid: 7, counted, ..Sample::default() }));
        check(Record::System(SystemSample {
            cgroup_bytes: Some(1),
            cgroup_cache_bytes: Some(0),
            processes: 3,
            shm_used_bytes: Some(1 << 40),
            ..SystemSample::default()
        }));
        check(Record::Process(ProcessRecord {
            name: "python ü\"".into(),
            agent: true,
            ..ProcessRecord::default()
        }));
        check(Record::Gpu(GpuSample { pid: Some(7), slowed: Some(Slowed::Heat), ..GpuSample::default() }));
        let message = Boundary { seq: 1, ..Boundary::default() }.into();
        check(Record::Event(AgentEvent { time_ns: 1, pid: 2, message }));
    }

    #[test]
    fn fields_that_came_later_are_zero_in_older_messages() {
        let mut bytes = Vec::new();
        Message::from(Bye { steps: 5, epochs: 6, cost_ns: 7, longest_pause_ns: 0 }).encode(&mut bytes);
        // As a version without the last field would have written it.
        bytes.pop();
        bytes[0] -= 1;
        let bye = Bye { steps: 5, epochs: 6, cost_ns: 7, longest_pause_ns: 0 };
        assert_eq!(decode_message(&bytes).unwrap(), Message::from(bye));
    }

    #[test]
    fn a_message_cut_short_is_an_error() {
        let mut bytes = Vec::new();
        Message::from(Note { code: caulk_core::wire::NoteCode::Alarm, text: "y".into() }).encode(&mut bytes);
        bytes.pop();
        assert!(decode_message(&bytes).is_err());
    }
}
