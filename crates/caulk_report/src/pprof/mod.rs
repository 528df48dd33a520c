//! The heap by stack as a pprof profile, for `go tool pprof`, Pyroscope, Speedscope and other viewers.
//!
//! A sample is one stack of one process. `inuse_space` has its live bytes at the last boundary, `inuse_growth` their growth per
//! unit, and `alloc_space` what it has allocated over the whole run, given back or not.

mod message;
mod tables;

use std::io::{self, Write as _};

use caulk_core::{StackUse, VerdictUnit};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use crate::words::{self, Per};
use message::{Label, Profile, Sample, ValueType};
use tables::Tables;

/// What a profile holds beside its stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileHead<'a> {
    /// Name of the run.
    pub run: &'a str,
    /// Version of caulk that recorded.
    pub caulk: &'a str,
    /// Start since 1970, in nanoseconds; 0 if it is not known.
    pub started_ns: i64,
    /// Length of the run, in nanoseconds.
    pub duration_ns: i64,
    /// Mean bytes between samples.
    pub interval: u64,
}

/// The profile, compressed by gzip.
///
/// # Errors
/// If the compressor fails, which it does not in memory.
pub fn pprof(stacks: &[StackUse], head: ProfileHead<'_>) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&profile(stacks, head).encode_to_vec())?;
    encoder.finish()
}

fn profile(stacks: &[StackUse], head: ProfileHead<'_>) -> Profile {
    let unit = stacks.first().map_or(VerdictUnit::Epoch, |stack| stack.unit);
    let per = Per::of(unit);
    let mut tables = Tables::default();
    let bytes = tables.text("bytes");
    let mut values = |kind: &str| ValueType { kind: tables.text(kind), unit: bytes };
    let sample_type = vec![values("inuse_space"), values("inuse_growth"), values("alloc_space")];
    let period_type = Some(values("space"));
    let key = tables.text("process");
    let sample = stacks
        .iter()
        .map(|stack| {
            // A launcher without epochs grows by seconds: bytes per second do not add up with bytes per epoch.
            let growth = if stack.unit == unit { stack.growth * per.factor } else { 0.0 };
            let process = words::owner(&stack.process).unwrap_or_else(|| "main process".into());
            Sample {
                location_id: tables.stack(stack),
                value: [stack.live.bytes, growth, stack.allocated].map(|bytes| bytes.round() as i64).to_vec(),
                label: vec![Label { key, text: tables.text(&process) }],
            }
        })
        .collect();
    let comments = [
        format!("run {}, recorded by caulk {}", head.run, head.caulk),
        format!("inuse_growth: bytes per {}", per.name),
        "estimated from sampled allocations".to_owned(),
    ];
    let comment = comments.iter().map(|text| tables.text(text)).collect();
    let default_sample_type = tables.text("inuse_space");
    let (string_table, function, location) = tables.finish();
    Profile {
        sample_type,
        sample,
        location,
        function,
        string_table,
        time_nanos: head.started_ns,
        duration_nanos: head.duration_ns,
        period_type,
        period: i64::try_from(head.interval).unwrap_or(i64::MAX),
        comment,
        default_sample_type,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::io::Read as _;

    use caulk_core::{ProcessRef, Sampled, StackFrame};
    use flate2::read::GzDecoder;

    use super::*;

    fn frame(function: &str, line: u32) -> StackFrame {
        StackFrame { file: "train.py".into(), line, function: function.into(), own: true }
    }

    fn stack(frames: &[StackFrame], bytes: f64, growth: f64) -> StackUse {
        StackUse {
            process: ProcessRef::main(),
            frames: frames.to_vec(),
            rest: false,
            truncated: false,
            borrowed: false,
            live: Sampled { bytes, deviation: 0.0 },
            growth,
            allocated: 2.0 * bytes,
            unit: VerdictUnit::Epoch,
        }
    }

    /// The profile as a reader sees it: type and process, functions with lines from the outside in, values.
    fn read(stacks: &[StackUse]) -> (Profile, Vec<String>) {
        let head = ProfileHead { run: "r", caulk: "1", interval: 524_288, ..ProfileHead::default() };
        let mut bytes = Vec::new();
        GzDecoder::new(pprof(stacks, head).unwrap().as_slice()).read_to_end(&mut bytes).unwrap();
        let profile = Profile::decode(bytes.as_slice()).unwrap();
        let text = |number: i64| profile.string_table[number as usize].as_str();
        let place = |id: &u64| {
            let line = &profile.location.iter().find(|location| location.id == *id).unwrap().line[0];
            let function = profile.function.iter().find(|one| one.id == line.function_id).unwrap();
            format!("{} {}:{}", text(function.name), text(function.filename), line.line)
        };
        let row = |sample: &Sample| {
            let stack: Vec<String> = sample.location_id.iter().rev().map(place).collect();
            let label = &sample.label[0];
            let (key, value) = (text(label.key), text(label.text));
            format!("{key}={value} {} {:?}", stack.join(" > "), sample.value)
        };
        let rows = profile.sample.iter().map(row).collect();
        (profile, rows)
    }

    #[test]
    fn stacks_are_samples_with_their_bytes_and_their_process() {
        let (outer, inner) = (frame("main", 3), frame("load", 9));
        let worker = ProcessRef { role: "worker".into(), index: 1, count: 1 };
        let borrowed =
            StackUse { process: worker, borrowed: true, ..stack(std::slice::from_ref(&outer), 7.6, 0.0) };
        let (profile, rows) = read(&[stack(&[outer, inner], 4e6, 2e3), borrowed]);
        assert_eq!(
            rows,
            [
                "process=main process main train.py:3 > load train.py:9 [4000000, 2000, 8000000]",
                "process=worker 1 main train.py:3 > threads that work for it :0 [8, 0, 15]",
            ]
        );
        assert_eq!((profile.location.len(), profile.function.len()), (3, 3), "places are shared");
        assert_eq!((profile.string_table[0].as_str(), profile.period), ("", 524_288));
        let names: Vec<&str> = profile
            .sample_type
            .iter()
            .map(|kind| profile.string_table[kind.kind as usize].as_str())
            .collect();
        assert_eq!(names, ["inuse_space", "inuse_growth", "alloc_space"]);
    }

    #[test]
    fn memory_without_a_stack_is_in_the_sum() {
        let rest = StackUse { rest: true, ..stack(&[], 5.0, 0.0) };
        let cut = StackUse { truncated: true, ..stack(&[frame("deep", 1)], 1.0, 0.0) };
        let (profile, rows) = read(&[rest, stack(&[], 3.0, 0.0), cut]);
        assert_eq!(profile.sample.iter().map(|sample| sample.value[0]).sum::<i64>(), 9);
        assert!(rows[0].contains("stacks that hold little") && rows[1].contains("no Python"), "{rows:?}");
        assert!(rows[2].contains("further out :0 > deep train.py:1"), "{rows:?}");
    }

    #[test]
    fn growth_per_second_is_not_added_to_growth_per_epoch() {
        let launcher = StackUse { unit: VerdictUnit::Seconds, ..stack(&[frame("wait", 1)], 1.0, 50.0) };
        let (profile, _) = read(&[stack(&[frame("main", 3)], 1.0, 20.0), launcher]);
        assert_eq!(profile.sample.iter().map(|sample| sample.value[1]).collect::<Vec<_>>(), [20, 0]);
    }
}
