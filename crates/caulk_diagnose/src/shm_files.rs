//! Files in `/dev/shm`: they are memory, though no process has them mapped, and outlive who wrote them.

use caulk_core::wire::Message;
use caulk_core::{Recording, Remark};

use crate::units::median;

/// What is gained that is worth a word, in bytes.
const WORTH: f64 = 32.0 * 1024.0 * 1024.0;
/// Parts of the run of which each must have more than the one before.
const PARTS: usize = 4;

/// What was taken in `/dev/shm` more and more, beside what processes of the run have mapped more of.
pub(crate) fn remark(recording: &Recording) -> Option<Remark> {
    let taken: Vec<f64> =
        recording.system.iter().filter_map(|look| Some(look.shm_used_bytes? as f64)).collect();
    let parts: Vec<f64> =
        taken.chunks(taken.len().div_ceil(PARTS).max(1)).filter_map(|part| median(part.to_vec())).collect();
    let rises = parts.len() == PARTS && parts.windows(2).all(|pair| pair[1] > pair[0]);
    // The program may delete them at its end.
    let gained =
        taken.iter().fold(0.0, |most: f64, look| most.max(*look)) - taken.first()? - mapped(recording);
    (rises && gained >= WORTH).then_some(Remark::ShmFiles { bytes: gained as u64 })
}

/// Shared memory that the processes have come to map, or have made, whichever is more.
fn mapped(recording: &Recording) -> f64 {
    let gained = |pid| {
        let boundaries = recording.events.iter().filter(|event| event.pid == pid);
        let mut levels = boundaries.filter_map(|event| match &event.message {
            Message::Boundary(boundary) => Some(boundary.shm_bytes.max(boundary.segment_bytes)),
            _ => None,
        });
        let first = levels.next().unwrap_or(0);
        levels.next_back().unwrap_or(first).saturating_sub(first) as f64
    };
    recording.processes.iter().map(|process| gained(process.pid)).sum()
}

#[cfg(test)]
mod tests {
    use caulk_core::wire::Boundary;
    use caulk_core::{AgentEvent, ProcessRecord, SystemSample};

    use super::*;

    const MB: u64 = 1 << 20;

    fn note_of(taken: impl Iterator<Item = u64>, mapped: u64) -> Option<String> {
        let look = |bytes| SystemSample { shm_used_bytes: Some(bytes), ..SystemSample::default() };
        let boundary = |shm_bytes| {
            let message = Message::Boundary(Boundary { shm_bytes, ..Boundary::default() });
            AgentEvent { pid: 7, time_ns: 0, message }
        };
        remark(&Recording {
            system: taken.map(look).collect(),
            events: vec![boundary(0), boundary(mapped)],
            processes: vec![ProcessRecord { pid: 7, ..ProcessRecord::default() }],
            ..Recording::default()
        })
        .map(|remark| caulk_report::note(&remark).text)
    }

    #[test]
    fn files_that_become_more_are_told() {
        let told = note_of((0..20).map(|look| 9 * look * MB), 0).expect("it rises");
        assert!(told.starts_with("/dev/shm took 171 MB more and more"), "{told}");
        assert!(note_of((0..20).map(|look| 9 * look * MB).chain([0]), 0).is_some(), "deleted at the end");
        assert_eq!(note_of((0..20).map(|look| 9 * look * MB), 160 * MB), None, "processes have it mapped");
        assert_eq!(note_of((0..20).map(|look| look * MB), 0), None, "too little");
        assert_eq!(note_of((0..20).map(|look| look % 5 * 99 * MB), 0), None, "it comes and goes");
        assert_eq!(note_of([0, 99 * MB].into_iter(), 0), None, "too few looks");
    }
}
