//! Lines on standard error while a plan takes its time: a training is run, a model is counted.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli;
use crate::printer::Printer;

/// What is done sooner needs no line.
const FIRST: Duration = Duration::from_secs(2);
/// Between two lines on a terminal.
const ON_TERMINAL: Duration = Duration::from_secs(5);
/// Between two lines in a file.
const IN_FILE: Duration = Duration::from_secs(30);

/// Says now and then how far it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    printer: Printer,
    /// `None` where nobody wants to know.
    every: Option<Duration>,
}

impl Progress {
    /// As the user wants it, and as standard error is.
    pub(crate) fn new(wanted: cli::PlanProgress, printer: Printer) -> Self {
        let every = match (wanted, printer.is_terminal()) {
            (cli::PlanProgress::None, _) | (cli::PlanProgress::Auto, false) => None,
            (_, true) => Some(ON_TERMINAL),
            (cli::PlanProgress::Line, false) => Some(IN_FILE),
        };
        Self { printer, every }
    }

    /// Begins something: the first line says what.
    pub(crate) fn begin(self, what: &str) -> Step {
        if self.every.is_some() {
            self.printer.progress(what);
        }
        Step { progress: self, began: Instant::now(), next: FIRST }
    }

    /// Does something that says nothing itself, and says meanwhile for how long.
    pub(crate) fn during<T>(self, what: &str, work: impl FnOnce() -> T) -> T {
        let mut step = self.begin(what);
        thread::scope(|scope| {
            let (done, wait) = mpsc::channel::<()>();
            scope.spawn(move || {
                while wait.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
                    step.tick(|seconds| format!("{what}: {seconds} s"));
                }
            });
            let result = work();
            drop(done);
            result
        })
    }
}

/// Something that goes on.
#[derive(Debug)]
pub(crate) struct Step {
    progress: Progress,
    began: Instant,
    /// When the next line is due, from the beginning.
    next: Duration,
}

impl Step {
    /// Says how far it is, if it is time for that.
    pub(crate) fn tick(&mut self, text: impl FnOnce(u64) -> String) {
        let (Some(every), elapsed) = (self.progress.every, self.began.elapsed()) else { return };
        if elapsed >= self.next {
            self.next = elapsed + every;
            self.progress.printer.progress(&text(elapsed.as_secs()));
        }
    }
}
