//! `q` ends `caulk top`. Keys come one by one while it goes on; whoever ends or stops it finds the terminal as it was.
//!
//! A thread of its own waits for keys and signals: both are heard while the page is made, too.

use std::io;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use caulk_supervise::{EXIT_SIGNAL_BASE, HeldSignals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpgrp};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use rustix::time::Timespec;

use crate::exit;

/// Between two looks at whether the terminal is ours: the shell takes it and gives it back.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Listens until this is dropped, which gives the terminal back.
#[derive(Debug)]
pub(crate) struct Keys(Arc<Mutex<Keyboard>>);

/// Listens from here on, if there is a keyboard.
pub(crate) fn listen() -> Option<Keys> {
    if !rustix::termios::isatty(stdin()) {
        return None;
    }
    let held = HeldSignals::back().ok()?;
    let keyboard = Arc::new(Mutex::new(Keyboard { before: None, closed: false }));
    lock(&keyboard).take();
    let keys = Keys(Arc::clone(&keyboard));
    thread::spawn(move || wait(held, &keyboard));
    Some(keys)
}

impl Drop for Keys {
    fn drop(&mut self) {
        let mut keyboard = lock(&self.0);
        keyboard.give_back();
        keyboard.closed = true;
    }
}

fn lock(keyboard: &Mutex<Keyboard>) -> MutexGuard<'_, Keyboard> {
    keyboard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until somebody ends it.
fn wait(mut held: HeldSignals, keyboard: &Mutex<Keyboard>) {
    loop {
        let listens = lock(keyboard).take();
        let mut files = [PollFd::new(&held, PollFlags::IN), PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        // Interrupted is as good as too early.
        let _ = poll(&mut files[..if listens { 2 } else { 1 }], Some(&LOOK));
        let pressed = listens && !files[1].revents().is_empty();
        while let Some(signal) = held.arrived() {
            lock(keyboard).give_back();
            // Whoever has it stopped goes on from here later.
            if held.let_through(signal).is_err() || signal != Signal::TSTP {
                process::exit(EXIT_SIGNAL_BASE + signal.as_raw());
            }
        }
        if pressed && is_ours() && quits() {
            // No page is left half written.
            let _page = io::stdout().lock();
            lock(keyboard).give_back();
            process::exit(exit::SUCCESS);
        }
    }
}

/// Was `q` pressed, or has the terminal gone?
fn quits() -> bool {
    let mut keys = [0; 64];
    match rustix::io::read(stdin(), &mut keys) {
        Ok(count) => count == 0 || keys[..count].iter().any(|key| key.eq_ignore_ascii_case(&b'q')),
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// Whoever touches a terminal from the background is stopped.
fn is_ours() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// The terminal's settings.
#[derive(Debug)]
struct Keyboard {
    /// As they were, where they are changed.
    before: Option<Termios>,
    /// They stay as they are from now on.
    closed: bool,
}

impl Keyboard {
    /// Has keys come one by one and unseen, where the terminal is ours; true where they do. Ctrl-C stays what it is.
    fn take(&mut self) -> bool {
        if self.closed || !is_ours() {
            return false;
        }
        let Ok(now) = tcgetattr(stdin()) else { return false };
        let lines = LocalModes::ICANON | LocalModes::ECHO;
        if !now.local_modes.intersects(lines) {
            return true;
        }
        let mut wanted = now.clone();
        wanted.local_modes -= lines;
        let taken = tcsetattr(stdin(), OptionalActions::Now, &wanted).is_ok();
        if taken {
            self.before = Some(now);
        }
        taken
    }

    /// Puts them back.
    fn give_back(&mut self) {
        if let Some(before) = self.before.take().filter(|_| is_ours()) {
            // There is nobody to tell that the terminal has gone.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        }
    }
}
