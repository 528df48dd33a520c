//! Runs a command under the supervisor and writes what the sink is told to a file, one line each.
//!
//! `supervise LOG [key=value]... -- COMMAND...` with the keys `cgroup`, `package`, `runtime`, `sampler`,
//! `progress`, `period_ms`, `epochs`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::exit;
use std::time::Duration;

use caulk_core::wire::Message;
use caulk_core::{AgentEvent, GpuSample, Limits, Note, ProcessRecord, Sample, SystemSample};
use caulk_supervise::{LaunchError, Options, Progress, RunStart, Sink};

struct Log(BufWriter<File>);

impl Log {
    fn line(&mut self, text: &str) {
        writeln!(self.0, "{text}").expect("the log can be written");
    }
}

impl Sink for Log {
    fn started(&mut self, start: &RunStart) {
        self.line(&format!("started {}", start.root_pid));
        self.0.flush().expect("the log can be written");
    }

    fn limited(&mut self, limits: &Limits) {
        self.line(&format!("limited {:?}", limits.cgroup_bytes));
    }

    fn sample(&mut self, sample: &Sample) {
        let Sample { pid, rss_bytes, pss_bytes, counted, .. } = sample;
        self.line(&format!("sample {pid} {rss_bytes} {pss_bytes:?}"));
        if let Some(counted) = counted {
            self.line(&format!("counted {pid} {} {}", counted.malloc_bytes, counted.blocks));
        }
    }

    fn system(&mut self, sample: &SystemSample) {
        self.line(&format!("system {} {}", sample.processes, sample.tree_rss_bytes));
    }

    fn gpu(&mut self, sample: &GpuSample) {
        self.line(&format!("gpu {} {:?} {}", sample.device, sample.pid, sample.used_bytes));
    }

    fn process(&mut self, record: &ProcessRecord) {
        let ProcessRecord { pid, parent, role, index, name, agent, .. } = record;
        self.line(&format!("process {pid} {parent} {} {index} {name} {agent}", role.as_str()));
    }

    fn event(&mut self, event: &AgentEvent) {
        let what = match &event.message {
            Message::Hello(hello) => format!("hello {}", hello.pid),
            Message::Boundary(boundary) => format!("boundary {}", boundary.seq),
            other => format!("{other:?}"),
        };
        self.line(&format!("event {} {what}", event.pid));
    }

    fn tick(&mut self, _now_ns: u64) {
        self.0.flush().expect("the log can be written");
    }

    fn note(&mut self, note: &Note) {
        self.line(&format!("note {}", note.text));
    }

    fn act(&mut self, text: &str) {
        self.line(&format!("note {text}"));
    }
}

fn main() {
    caulk_supervise::outlive_file_limit();
    let mut arguments = env::args_os().skip(1);
    let log = arguments.next().expect("first argument: the log");
    let settings: Vec<OsString> = arguments.by_ref().take_while(|argument| argument != "--").collect();
    let mut options = Options::new(arguments.collect());
    for setting in settings {
        let setting = setting.into_string().expect("settings are text");
        let (key, value) = setting.split_once('=').expect("key=value");
        match key {
            "cgroup" => options.cgroup_root = value.into(),
            "package" => options.package = Some(value.into()),
            "runtime" => options.runtime_dir = Some(value.into()),
            "sampler" => options.sampler = Some(value.into()),
            "progress" => {
                options.progress = match value {
                    "auto" => Progress::Auto,
                    "line" => Progress::Line,
                    _ => Progress::None,
                }
            }
            "epochs" => options.epochs = Some(value.parse().expect("a number")),
            "period_ms" => options.period = Duration::from_millis(value.parse().expect("a number")),
            _ => panic!("unknown key {key}"),
        }
    }
    let mut sink = Log(BufWriter::new(File::create(log).expect("the log can be made")));
    match caulk_supervise::run(&options, &mut sink) {
        Ok(outcome) => {
            sink.line(&format!(
                "outcome {} {:?} {}",
                outcome.exit_code, outcome.death.kill, outcome.death.text
            ));
            drop(sink);
            exit(outcome.exit_code)
        }
        Err(error) => {
            complain(&error);
            exit(error.exit_code())
        }
    }
}

#[expect(clippy::print_stderr, reason = "an example without an output of its own")]
fn complain(error: &LaunchError) {
    eprintln!("error: {error}\n{}", error.hint().unwrap_or_default());
}
