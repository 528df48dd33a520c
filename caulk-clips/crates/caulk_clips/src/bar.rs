//! One line on standard error that says how far the work is; none where that is no terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use caulk_prepare::Progress;

/// Between two lines.
const PERIOD: Duration = Duration::from_millis(250);

/// The line.
#[derive(Debug)]
pub(crate) struct Bar {
    terminal: bool,
    start: Instant,
    last: Option<Instant>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), start: Instant::now(), last: None }
    }

    /// Shows how far the work is, not more often than is worth it.
    pub(crate) fn show(&mut self, progress: &Progress) {
        if !self.terminal || self.last.is_some_and(|last| last.elapsed() < PERIOD) {
            return;
        }
        self.last = Some(Instant::now());
        write(&format!("\r\x1b[K{}", text(progress, self.start.elapsed())));
    }

    /// Takes it away.
    pub(crate) fn clear(&self) {
        if self.terminal {
            write("\r\x1b[K");
        }
    }
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    // There is nobody to tell that standard error is closed.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

fn text(progress: &Progress, elapsed: Duration) -> String {
    let Progress { videos, done, failed, .. } = *progress;
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let pace = if done > 0 {
        let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
        format!(", {rate:.1} per second, {}", time((videos - done) as f64 / rate))
    } else {
        String::new()
    };
    format!("{done} of {videos} videos{failed}{pace}")
}

fn time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..100 => format!("{seconds} s left"),
        100..6000 => format!("{} min left", seconds / 60),
        _ => format!("{} h {} min left", seconds / 3600, seconds / 60 % 60),
    }
}

#[test]
fn rate_and_time_left() {
    let progress = Progress { videos: 1000, done: 100, failed: 2, ..Progress::default() };
    let shown = text(&progress, Duration::from_secs(50));
    assert_eq!(shown, "100 of 1000 videos, 2 failed, 2.0 per second, 7 min left");
}
