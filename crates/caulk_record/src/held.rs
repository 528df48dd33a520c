//! A recording in memory: where there is no place for one on any disk, the report at the end is made from this.
//!
//! Its size is bounded. Looks are thinned as in the streams, and once more where there are too many of the older ones; of
//! what agents say the newest stays.

use std::collections::{HashMap, HashSet, VecDeque};

use caulk_core::wire::{Message, NoteCode};
use caulk_core::{AgentEvent, GpuSample, Note, ProcessRecord, Recording, RunInfo, Sample, SystemSample};

use crate::record::{Record, Row};
use crate::thin::Thin;
use crate::{head, reader, redact};

/// Looks that are held: a day of one process, or less of more of them.
const MOST_LOOKS: usize = 1 << 17;
/// What agents said, in bytes as the ring would have it.
const MOST_BYTES: usize = 64 << 20;
/// Processes of which the last record is held.
const MOST_PROCESSES: usize = 1 << 14;

/// A recording that is made in memory alone.
#[derive(Debug, Default)]
pub struct RecordingInMemory {
    thin: Thin,
    next_order: u64,
    now_ns: u64,
    looks: Vec<Row>,
    events: VecDeque<(usize, Row)>,
    event_bytes: usize,
    processes: HashMap<(u32, u64), Row>,
    lost: u64,
}

impl RecordingInMemory {
    /// Takes a look at a process.
    pub fn sample(&mut self, sample: &Sample) {
        self.take(Record::Sample(*sample));
    }

    /// Takes a look at the surroundings.
    pub fn system(&mut self, sample: &SystemSample) {
        self.take(Record::System(*sample));
    }

    /// Takes a look at a GPU.
    pub fn gpu(&mut self, sample: &GpuSample) {
        self.take(Record::Gpu(sample.clone()));
    }

    /// Takes what an agent said, without secrets in the arguments of a `Hello`.
    pub fn event(&mut self, event: &AgentEvent) {
        let mut event = event.clone();
        if let Message::Hello(hello) = &mut event.message {
            hello.argv = redact(&hello.argv);
        }
        self.take(Record::Event(event));
    }

    /// Takes what is known of a process; the last record of a process counts.
    pub fn process(&mut self, process: &ProcessRecord) {
        self.take(Record::Process(process.clone()));
    }

    /// Keeps what is held small. Cheap: once a second is fine.
    pub fn tidy(&mut self) {
        self.close(self.now_ns);
    }

    /// All that was held.
    pub fn finish(mut self, info: &RunInfo) -> Recording {
        self.close(u64::MAX);
        let mut info = head::cleaned(info);
        if self.lost > 0 {
            let text = format!(
                "{} of the oldest messages of this run were not kept: it was recorded in memory alone",
                self.lost
            );
            info.notes.push(Note::new(NoteCode::RecordsLost, text));
        }
        let events = self.events.into_iter().map(|(_, row)| row);
        let rows = self.looks.into_iter().chain(events).chain(self.processes.into_values()).collect();
        reader::assemble(info, rows, Vec::new())
    }

    fn take(&mut self, record: Record) {
        self.now_ns = self.now_ns.max(record.time_ns());
        let row = Row { order: self.next_order, record };
        self.next_order += 1;
        let mut closed = Vec::new();
        self.thin.push(row, &mut |row| closed.push(row));
        for row in closed {
            self.keep(row);
        }
    }

    fn close(&mut self, now_ns: u64) {
        let mut closed = Vec::new();
        self.thin.close(now_ns, &mut |row| closed.push(row));
        for row in closed {
            self.keep(row);
        }
    }

    fn keep(&mut self, row: Row) {
        match &row.record {
            Record::Event(_) => self.keep_event(row),
            Record::Process(process) => {
                let key = (process.pid, process.first_ns);
                if self.processes.len() < MOST_PROCESSES || self.processes.contains_key(&key) {
                    self.processes.insert(key, row);
                }
            }
            Record::Sample(_) | Record::System(_) | Record::Gpu(_) => {
                self.looks.push(row);
                if self.looks.len() > MOST_LOOKS {
                    self.halve();
                }
            }
        }
    }

    fn keep_event(&mut self, row: Row) {
        let bytes = row.encode().len();
        self.event_bytes += bytes;
        self.events.push_back((bytes, row));
        while self.event_bytes > MOST_BYTES
            && let Some((bytes, _)) = self.events.pop_front()
        {
            self.event_bytes -= bytes;
            self.lost += 1;
        }
    }

    /// Of the older half, every second look at each thing goes.
    fn halve(&mut self) {
        let older = self.looks.len() / 2;
        let (mut odd, mut at) = (HashSet::new(), 0);
        self.looks.retain(|row| {
            let key = subject(row);
            let is_odd = odd.contains(&key);
            if is_odd {
                odd.remove(&key)
            } else {
                odd.insert(key)
            };
            at += 1;
            at > older || is_odd
        });
    }
}

/// What a look was at: a process, the system, or what a process has of a GPU.
fn subject(row: &Row) -> (Option<u32>, Option<u32>) {
    match &row.record {
        Record::Sample(sample) => (Some(sample.pid), None),
        Record::Gpu(gpu) => (gpu.pid, Some(gpu.device)),
        Record::System(_) | Record::Process(_) | Record::Event(_) => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_thinned_evenly_and_keeps_its_beginning_and_end() {
        let mut held = RecordingInMemory::default();
        let seconds = 200_000_u64;
        for second in 0..seconds {
            for pid in [1, 2] {
                let time_ns = second * 1_000_000_000;
                held.sample(&Sample { time_ns, pid, rss_bytes: second, ..Sample::default() });
            }
        }
        let samples = held.finish(&RunInfo::default()).samples;
        assert!((MOST_LOOKS / 4..=MOST_LOOKS + 4).contains(&samples.len()), "{}", samples.len());
        for pid in [1, 2] {
            let own: Vec<u64> =
                samples.iter().filter(|look| look.pid == pid).map(|look| look.rss_bytes).collect();
            assert!(own[0] < seconds / 100 && own[own.len() - 1] == seconds - 1, "{} {:?}", pid, own.last());
            assert!(own.len() * 3 > samples.len(), "{pid}: {} of {}", own.len(), samples.len());
        }
    }

    #[test]
    fn what_agents_say_is_bounded_too() {
        let mut held = RecordingInMemory::default();
        let hello = caulk_core::wire::Hello { executable: "x".repeat(1 << 20), ..Default::default() };
        for time_ns in 0..100 {
            held.event(&AgentEvent { time_ns, pid: 1, message: Message::from(hello.clone()) });
        }
        let recording = held.finish(&RunInfo::default());
        assert!((60..64).contains(&recording.events.len()), "{}", recording.events.len());
        assert_eq!(recording.events.last().map(|event| event.time_ns), Some(99));
        assert!(recording.info.notes[0].text.starts_with("37 of the oldest"), "{:?}", recording.info.notes);
    }

    #[test]
    fn the_last_record_of_a_process_counts() {
        let mut held = RecordingInMemory::default();
        let process = |pid, last_ns| ProcessRecord { pid, last_ns, ..ProcessRecord::default() };
        for record in [process(1, 5), process(2, 6), process(1, 9)] {
            held.process(&record);
        }
        assert_eq!(held.finish(&RunInfo::default()).processes, [process(1, 9), process(2, 6)]);
    }
}
