//! The worker `caulk-clip`: one request as a line of JSON on standard input, one answer on standard output, until the input
//! ends. Pictures follow their answer as bytes.
//!
//! `caulk-clip [MEGABYTES [bound]]`: how much memory it may take. In the middle of a video it ends within seconds of the process
//! that started it; `bound`, at once with the thread that did. `caulk-clip --version` says which FFmpeg is in it.
//!
//! With the variable `CAULK_CLIP_PORTABLE` it uses no vector instructions: slower, and the same bytes.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use caulk_clip::job::{Answer, Decode, Outcome, Pictures, Request};
use caulk_clip::memory::BESIDE;
use caulk_clip::picture::Size;
use caulk_clip::random::Key;
use caulk_ffmpeg::{ClipError, DecodeError, Options, Target, log};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

const MEGABYTE: u64 = 1_000_000;
/// Where nobody says how much memory there is.
const DEFAULT_MEGABYTES: u64 = 1000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let argument = arguments.next();
    if argument.as_deref() == Some("--version") {
        let _ = writeln!(
            io::stdout(),
            "caulk-clip {} ffmpeg {}",
            env!("CARGO_PKG_VERSION"),
            caulk_ffmpeg::version()
        );
        return ExitCode::SUCCESS;
    }
    let megabytes = argument.and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_MEGABYTES);
    let memory: u64 = megabytes * MEGABYTE;
    limit(memory);
    if arguments.next().as_deref() == Some("bound") {
        // Where that is refused, the end of the input ends it after the video.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    } else {
        end_with(getppid());
    }
    if std::env::var_os("CAULK_CLIP_PORTABLE").is_some() {
        caulk_ffmpeg::use_no_vector_instructions();
    }
    log::keep();
    match serve(memory.saturating_sub(BESIDE)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What the decoder's own checks let through must not take the machine down.
fn limit(bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let old = getrlimit(Resource::Data);
    // It can only be lowered; where that is refused a lower one stands.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: old.maximum });
}

/// Ends this process when another one is its parent. No signal tells of a process: it would tell of one thread.
fn end_with(parent: Option<Pid>) {
    let watch = move || {
        while getppid() == parent {
            thread::sleep(Duration::from_secs(1));
        }
        std::process::exit(1);
    };
    let _ = thread::Builder::new().stack_size(1 << 16).spawn(watch);
}

fn serve(memory: u64) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        log::take();
        let (outcome, sequential, bytes) = answer(&line, memory);
        let answer = Answer { outcome, sequential, messages: log::take().lines };
        let text = serde_json::to_string(&answer).map_err(io::Error::other)?;
        writeln!(output, "{text}")?;
        output.write_all(&bytes)?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}

fn answer(line: &str, memory: u64) -> (Outcome, Option<String>, Vec<u8>) {
    let failed = |error: String| (Outcome::Failed(error), None, Vec::new());
    match serde_json::from_str(line) {
        Ok(Request::Decode(job)) => decode(&job, memory).unwrap_or_else(|error| failed(error.to_string())),
        Ok(Request::Prepare(job)) => match caulk_ffmpeg::prepare(&job, memory) {
            Ok(made) => {
                (Outcome::Clips { clips: made.written, total: made.total }, made.sequential, Vec::new())
            }
            Err(error @ ClipError::Write { .. }) => (Outcome::Unwritten(error.to_string()), None, Vec::new()),
            Err(error) => failed(error.to_string()),
        },
        Err(error) => failed(format!("not a request: {error}")),
    }
}

fn decode(job: &Decode, memory: u64) -> Result<(Outcome, Option<String>, Vec<u8>), DecodeError> {
    let target = Target { size: job.size, fit: job.fit };
    let key = Key::of(job.name.as_ref().unwrap_or(&job.path), 0, job.seed);
    let choose = |total| job.selection.choose(job.frames, total, &mut key.draws("frames"));
    let cache = job.cache.as_deref();
    let options = Options { target, memory, sequential: job.sequential, snap: job.snap, cache };
    let decoded = caulk_ffmpeg::decode(&job.path, &options, &choose)?;
    let frames = choose(decoded.total)?;
    let bytes: Vec<u8> = frames.iter().flat_map(|frame| &decoded.pictures[frame].rgb).copied().collect();
    let first = frames.first().and_then(|frame| decoded.pictures.get(frame));
    let size = first.map_or(Size { width: 0, height: 0 }, |picture| picture.size);
    let frames = frames.iter().map(|frame| decoded.taken[frame]).collect();
    let pictures = Pictures { frames, total: decoded.total, size, bytes: bytes.len() as u64 };
    Ok((Outcome::Pictures(pictures), decoded.sequential, bytes))
}
