//! Copies a recording so that it reads the same on every machine: `pack RUN NEW DIRECTORY [OLD=NEW]...`.
//!
//! Every text that holds `OLD` gets `NEW` instead (paths of this machine), in the order of the arguments; the run began
//! in `DIRECTORY`, on a host without a name. Checksums and the report that was made at the end stay behind.
//! `cargo xtask record` calls it.

use std::env::args;
use std::process::ExitCode;

use camino::Utf8Path;
use caulk_core::{AgentEvent, GpuSample, Recording, RunInfo, Sample, SystemSample, Target};
use caulk_record::Writer;

/// One row of the copy.
enum Row<'a> {
    Sample(&'a Sample),
    System(&'a SystemSample),
    Gpu(&'a GpuSample),
    Event(Box<AgentEvent>),
}

/// Pairs of a text and what replaces it.
struct Changes(Vec<(String, String)>);

impl Changes {
    fn read(words: &[String]) -> Option<Self> {
        let pair = |word: &String| word.split_once('=').map(|(old, new)| (old.to_owned(), new.to_owned()));
        words.iter().map(pair).collect::<Option<_>>().map(Self)
    }

    fn apply(&self, text: &mut String) {
        for (old, new) in &self.0 {
            if text.contains(old.as_str()) {
                *text = text.replace(old.as_str(), new);
            }
        }
    }

    fn head(&self, info: &RunInfo, id: &str, directory: &str) -> RunInfo {
        let (id, host) = (id.to_owned(), "host".to_owned());
        let target = Target { directory: directory.to_owned(), host, ..info.target.clone() };
        let mut info = RunInfo { id, target, ..info.clone() };
        let death = info.death.iter_mut().map(|death| &mut death.text);
        let texts = info
            .target
            .command
            .iter_mut()
            .chain(info.notes.iter_mut().map(|note| &mut note.text))
            .chain(death);
        texts.for_each(|text| self.apply(text));
        info
    }
}

/// What was recorded, in order of time, with the texts replaced.
fn rows<'a>(recording: &'a Recording, changes: &Changes) -> Vec<(u64, Row<'a>)> {
    let samples = recording.samples.iter().map(|sample| (sample.time_ns, Row::Sample(sample)));
    let system = recording.system.iter().map(|sample| (sample.time_ns, Row::System(sample)));
    let gpus = recording.gpus.iter().map(|sample| (sample.time_ns, Row::Gpu(sample)));
    let events = recording.events.iter().map(|event| {
        let mut event = event.clone();
        event.message.each_text(|text| changes.apply(text));
        (event.time_ns, Row::Event(Box::new(event)))
    });
    let mut rows: Vec<_> = samples.chain(system).chain(gpus).chain(events).collect();
    rows.sort_by_key(|(time_ns, _)| *time_ns);
    rows
}

fn pack(run: &Utf8Path, new: &Utf8Path, directory: &str, changes: &Changes) -> Result<(), String> {
    let recording = caulk_record::read(run).map_err(|error| error.to_string())?;
    if let [problem, ..] = &recording.problems[..] {
        return Err(problem.clone());
    }
    let info = changes.head(&recording.info, new.file_name().unwrap_or_default(), directory);
    let mut writer = Writer::create(new, &info).map_err(|error| error.to_string())?;
    for (_, row) in rows(&recording, changes) {
        match row {
            Row::Sample(sample) => writer.sample(sample),
            Row::System(sample) => writer.system(sample),
            Row::Gpu(sample) => writer.gpu(sample),
            Row::Event(event) => writer.event(&event),
        }
    }
    recording.processes.iter().for_each(|process| writer.process(process));
    writer.finish(&info).map_err(|error| error.to_string())?;
    std::fs::remove_file(new.join("index.log")).map_err(|error| error.to_string())
}

#[expect(clippy::print_stderr, reason = "a program for xtask, which shows what it says")]
fn main() -> ExitCode {
    let words: Vec<String> = args().skip(1).collect();
    let [run, new, directory, changes @ ..] = &words[..] else {
        eprintln!("usage: pack RUN NEW DIRECTORY [OLD=NEW]...");
        return ExitCode::from(2);
    };
    let packed = Changes::read(changes)
        .ok_or_else(|| "a replacement is no OLD=NEW".to_owned())
        .and_then(|changes| pack(run.as_ref(), new.as_ref(), directory, &changes));
    match packed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
