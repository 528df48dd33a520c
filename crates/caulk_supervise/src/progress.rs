//! Lines on standard error while the run goes on: how much, how it grows, when it ends.
//!
//! Whole lines at boundaries: one per epoch where they were asked for, else at most one in 30 seconds, as for programs
//! without epochs. Never where they could stop or block anything: not from the background of a terminal, not into a pipe
//! that is full. An error there silences them.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use caulk_core::wire::{Boundary, Phase, Unit};
use caulk_core::{Beside, Bytes, State};
use caulk_growth::{JudgeOptions, Judgement, Point, Stretches, forecast, judge};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::Progress;

/// Between two lines, but for those of epochs that were asked for, in nanoseconds.
const PAUSE_NS: u64 = 30_000_000_000;

/// Readings that are judged; of longer runs the last ones.
const MOST_POINTS: usize = 400;

/// A forecast beyond this many seconds is no news.
const FAR_S: f64 = 30.0 * 86400.0;

/// Memory in use and the most there can be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

/// The series of the main process, and the lines made from it.
#[derive(Debug)]
pub(crate) struct Lines {
    wanted: bool,
    /// One for each epoch, however short it is.
    each_epoch: bool,
    terminal: bool,
    next_ns: u64,
    begun_ns: Option<u64>,
    /// Has malloc told what is in use?
    told: bool,
    /// Process whose series these are.
    pid: u32,
    series: Vec<Series>,
}

/// Readings at the ends of one kind of phase.
#[derive(Debug)]
struct Series {
    kind: (Unit, Phase),
    /// Private memory beside the allocators' at the first of them that tells.
    first: Option<Beside>,
    points: Vec<(u64, Point)>,
}

impl Lines {
    pub(crate) fn new(progress: Progress) -> Self {
        let terminal = io::stderr().is_terminal();
        let wanted = match progress {
            Progress::Auto => terminal,
            Progress::Line => true,
            Progress::None => false,
        };
        let each_epoch = progress == Progress::Line;
        Self {
            wanted,
            each_epoch,
            terminal,
            next_ns: 0,
            begun_ns: None,
            told: false,
            pid: 0,
            series: Vec::new(),
        }
    }

    /// Takes in a boundary of the main process, and says how things are if it is time.
    pub(crate) fn boundary(
        &mut self,
        pid: u32,
        boundary: &Boundary,
        now_ns: u64,
        rooms: impl FnOnce() -> Vec<Room>,
    ) {
        // Where malloc was not asked there is nothing to say.
        self.told |= boundary.malloc_bytes > 0;
        if !self.wanted || (self.told && boundary.malloc_bytes == 0) {
            return;
        }
        if self.pid != pid {
            (self.pid, self.series) = (pid, Vec::new());
        }
        let series = self.add(boundary);
        let begun_ns = *self.begun_ns.get_or_insert(now_ns);
        // Epochs say it best. Until they come, steps and seconds get a word, after some time.
        let early = boundary.unit != Unit::Epoch && now_ns < begun_ns + PAUSE_NS;
        let better = self.series.iter().any(|series| series.kind.0 < boundary.unit);
        let due = now_ns >= self.next_ns || (self.each_epoch && boundary.unit == Unit::Epoch);
        if early || better || !due {
            return;
        }
        let line = line(&self.series[series], boundary, &rooms());
        self.next_ns = now_ns + PAUSE_NS;
        self.wanted = self.print(&line).is_ok();
    }

    /// Adds the reading to its series and returns which that is.
    fn add(&mut self, boundary: &Boundary) -> usize {
        let kind = (boundary.unit, boundary.phase);
        let series = self.series.iter().position(|series| series.kind == kind).unwrap_or_else(|| {
            self.series.push(Series { kind, first: None, points: Vec::new() });
            self.series.len() - 1
        });
        let Series { first, points, .. } = &mut self.series[series];
        *first = first.or_else(|| beside(boundary));
        if points.len() == MOST_POINTS {
            points.remove(0);
        }
        let value = allocated(boundary) + boundary.shm_bytes as f64 + gained(*first, boundary);
        points.push((boundary.time_ns, Point { at: boundary.index as f64, value }));
        series
    }

    fn print(&self, line: &str) -> io::Result<()> {
        let stderr = io::stderr();
        if self.terminal && !in_foreground(&stderr) {
            return Ok(());
        }
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        if poll(&mut ready, Some(&Timespec::default()))? == 0 {
            return Ok(());
        }
        // A bar may stand in this line: it is cleared, and drawn again below by its program.
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        stderr.lock().write_all(format!("{start}{line}\n").as_bytes())
    }
}

/// Writing from the background stops the whole job where the terminal is set so.
fn in_foreground(stderr: &io::Stderr) -> bool {
    rustix::termios::tcgetpgrp(stderr).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Bytes that the allocators have handed out.
fn allocated(boundary: &Boundary) -> f64 {
    (boundary.malloc_bytes + boundary.small_bytes) as f64
}

fn beside(boundary: &Boundary) -> Option<Beside> {
    Beside::at(boundary, allocated(boundary))
}

/// Bytes that were mapped and touched beside the allocators since the first boundary that tells. The report, which knows how
/// it went on, counts them only where they became more and more.
fn gained(first: Option<Beside>, boundary: &Boundary) -> f64 {
    first.zip(beside(boundary)).map_or(0.0, |(first, now)| now.gained_since(first))
}

/// `caulk: epoch 3: 812 MB in use, +16.5 MB/epoch, growing so far, OOM in ~41 min`
fn line(series: &Series, boundary: &Boundary, rooms: &[Room]) -> String {
    let points: Vec<Point> = series.points.iter().map(|&(_, point)| point).collect();
    let judged = match boundary.unit {
        Unit::Epoch => judge(&points, &JudgeOptions::default()),
        Unit::Steps => judge_stretches(&points, JudgeOptions::for_steps),
        Unit::Seconds => judge_stretches(&points, JudgeOptions::for_seconds),
    };
    let (name, per, scale) = match boundary.unit {
        Unit::Epoch => (format!("epoch {}", boundary.index + 1), "epoch", 1.0),
        Unit::Steps => (format!("step {}", boundary.index), "100 steps", 100.0),
        Unit::Seconds => (format!("{} s", boundary.index), "min", 60.0),
    };
    let in_use = points.last().map_or(0.0, |last| last.value) as u64;
    let mut text = format!("caulk: {name}: {} in use", Bytes(in_use));
    // The slope of what does not grow is noise.
    if points.len() > 1 && matches!(judged.state, State::Grows | State::Undecided) {
        let _ = write!(text, ", {}/{per}", Bytes::signed(judged.slope * scale));
    }
    text.push_str(", ");
    text.push_str(&state(&judged, boundary.unit));
    if let Some(seconds) = time_left(series, &judged, rooms) {
        let _ = write!(text, ", OOM in ~{}", duration(seconds));
    }
    text
}

fn state(judged: &Judgement, unit: Unit) -> String {
    match judged.state {
        State::Grows => "growing so far".into(),
        State::GrowsWithinEpoch => "freed at the end of the epoch".into(),
        State::Plateaus => "levelled off".into(),
        State::Sawtooth => "returning to its level".into(),
        State::Flat => "steady".into(),
        State::Undecided => {
            let what = if unit == Unit::Epoch { "epoch" } else { "reading" };
            match judged.more_needed {
                Some(1) => format!("1 more {what} to tell"),
                Some(more) => format!("{more} more {what}s to tell"),
                None => "too early to tell".into(),
            }
        }
    }
}

/// Seconds until the nearest limit: the middle of the forecast's range.
fn time_left(series: &Series, judged: &Judgement, rooms: &[Room]) -> Option<f64> {
    let (first, last) = (series.points.first()?, series.points.last()?);
    let units = last.1.at - first.1.at;
    let seconds_per_unit = last.0.saturating_sub(first.0) as f64 / 1e9 / units.max(1.0);
    let ranges = rooms.iter().filter_map(|room| forecast(judged, room.used as f64, room.limit as f64));
    let nearest = ranges.map(|[soon, late]| (soon * late).sqrt()).min_by(f64::total_cmp)?;
    Some(nearest * seconds_per_unit).filter(|&seconds| seconds.is_finite() && seconds < FAR_S)
}

/// Steps and seconds are read in the middle of work.
fn judge_stretches(points: &[Point], options: fn(f64) -> JudgeOptions) -> Judgement {
    let stretches = Stretches::of(points);
    judge(&stretches.baselines, &options(stretches.span().max(1.0)))
}

/// Two digits are enough: `40 s`, `41 min`, `3.5 h`, `2.1 days`.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 36.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Epochs of a minute each, with this much in use, in megabytes.
    fn check(megabytes: &[u64], room: Option<Room>, expected: &str) {
        let mut lines = Lines {
            wanted: true,
            each_epoch: false,
            terminal: false,
            next_ns: u64::MAX,
            begun_ns: None,
            told: false,
            pid: 0,
            series: Vec::new(),
        };
        let mut last = Boundary::default();
        for (index, megabytes) in (0..).zip(megabytes) {
            let time_ns = index * 60_000_000_000;
            last = Boundary { index, time_ns, malloc_bytes: megabytes * Bytes::MB, ..Boundary::default() };
            lines.boundary(0, &last, 0, Vec::new);
        }
        let rooms: Vec<Room> = room.into_iter().collect();
        assert_eq!(line(&lines.series[0], &last, &rooms), expected);
    }

    #[test]
    fn a_line_says_how_much_how_fast_and_when() {
        let room = Room { used: 900 * Bytes::MB, limit: 1300 * Bytes::MB };
        let growing = [700, 720, 740, 760, 780, 800, 820, 840];
        check(&growing, None, "caulk: epoch 8: 840 MB in use, +20.0 MB/epoch, growing so far");
        check(
            &growing,
            Some(room),
            "caulk: epoch 8: 840 MB in use, +20.0 MB/epoch, growing so far, OOM in ~20 min",
        );
        check(&[700; 8], Some(room), "caulk: epoch 8: 700 MB in use, steady");
    }

    #[test]
    fn steps_are_judged_by_what_lies_between_two_looks() {
        // A hundred steps between two boundaries, and 2 MB: little per step, much per boundary.
        let points = (0..10_u32).map(|n| {
            (
                u64::from(n),
                Point { at: f64::from(n) * 100.0, value: f64::from(n + 300) * 2.0 * Bytes::MB as f64 },
            )
        });
        let series = Series { kind: (Unit::Steps, Phase::Run), first: None, points: points.collect() };
        let last =
            Boundary { index: 900, unit: Unit::Steps, malloc_bytes: 618 * Bytes::MB, ..Boundary::default() };
        let expected = "caulk: step 900: 618 MB in use, +2.00 MB/100 steps, growing so far";
        assert_eq!(line(&series, &last, &[]), expected);
    }

    #[test]
    fn what_is_mapped_beside_malloc_counts_where_it_is_touched() {
        let mb = Bytes::MB;
        let at = |mapped: u64, resident: u64| Boundary {
            malloc_bytes: 500 * mb,
            mapped_bytes: mapped * mb,
            rss_bytes: resident * mb,
            ..Boundary::default()
        };
        let first = beside(&at(100, 700));
        assert_eq!(gained(first, &at(150, 750)) as u64, 50 * mb);
        // Stacks of threads, and pages that malloc keeps.
        assert_eq!(gained(first, &at(900, 700)) as u64, 0);
        assert_eq!(gained(first, &at(100, 900)) as u64, 0);
        assert_eq!(gained(None, &at(150, 750)) as u64, 0);
    }

    #[test]
    fn the_first_lines_do_not_judge() {
        check(&[700], None, "caulk: epoch 1: 700 MB in use, 4 more epochs to tell");
    }

    #[test]
    fn durations_are_short() {
        let all = [40.0, 41.0 * 60.0, 3.5 * 3600.0, 2.1 * 86400.0].map(duration);
        assert_eq!(all, ["40 s", "41 min", "3.5 h", "2.1 days"]);
    }
}
