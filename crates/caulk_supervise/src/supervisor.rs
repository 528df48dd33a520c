//! The loop: waits for the command's end, for signals and for agents, and looks around four times a second.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::{Command, Finish, Message, NoteCode, PROTOCOL};
use caulk_core::{AgentEvent, Left, Note, Role, Sample};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::time::Timespec;

use crate::approach::Approach;
use crate::board::Board;
use crate::death::{self, Ending};
use crate::gpus::Gpus;
use crate::guard::Watch;
use crate::hard::{HardLimit, Prepared};
use crate::heaps::Heaps;
use crate::launch::Memory;
use crate::overlay::Holder;
use crate::progress::Lines;
use crate::sampler::Sampler;
use crate::segments::Segments;
use crate::signals::{Arrived, Signals};
use crate::silence::Silence;
use crate::socket::{Clients, Heard, Runtime};
use crate::stop::Stop;
use crate::surroundings::Surroundings;
use crate::tree::Tree;
use crate::witness::Witness;
use crate::{Cut, LaunchError, Options, Outcome, RunStart, Sink, clock, farewell, launch};

mod last_look;

/// Looking around gets one part in so many of a core; where it costs more, it is done less often.
const LOOK_DUTY: u64 = 250;

/// Longest time between two looks, in nanoseconds.
const LONGEST_PERIOD_NS: u64 = 10_000_000_000;

/// Longest time between two calls of [`Sink::tick`], in nanoseconds.
const TICK_NS: u64 = 1_000_000_000;

/// After the command's end, agents are heard for so long at most, in nanoseconds.
const LAST_WORDS_NS: u64 = 200_000_000;

/// A signal to the group reaches its members one after the other; after this they all have it.
const SIGNAL_SPREAD: Duration = Duration::from_millis(20);

/// Where segments of shared memory are, and the time between two looks there, in nanoseconds.
const SHARED_MEMORY: &str = "/dev/shm";
const SEGMENTS_NS: u64 = 1_000_000_000;

/// Notes beyond this number are not told.
const MOST_NOTES: usize = 100;

/// Where something waits.
#[derive(Debug, Default)]
struct Ready {
    signals: bool,
    /// One for each client, in order.
    clients: Vec<bool>,
    listener: bool,
}

struct Supervisor<'a> {
    sink: &'a mut dyn Sink,
    runtime: Runtime,
    clients: Clients,
    signals: Signals,
    witness: Option<Witness>,
    child: Child,
    tree: Tree,
    sampler: Sampler,
    surroundings: Surroundings,
    segments: Segments,
    next_segments_ns: u64,
    gpus: Gpus,
    /// Heap profiles, where the sampler is loaded.
    heaps: Option<Heaps>,
    /// Where training processes say how far they are.
    board: Option<Board>,
    /// How near memory is to its limits.
    approach: Approach,
    lines: Lines,
    stop: Stop,
    /// If caulk has ended the command on purpose.
    cut: Option<Cut>,
    /// The last signal to end that was sent meanwhile.
    signalled: Option<i32>,
    /// The file that takes the command's standard output.
    output: Option<Utf8PathBuf>,
    guard: Option<Watch>,
    /// Of the guard, that the kernel enforces; removed at the end.
    #[expect(dead_code, reason = "kept for its end")]
    limit: Option<Prepared>,
    /// Of the overlay, in which the command runs; ended at the end.
    #[expect(dead_code, reason = "kept for its end")]
    holder: Option<Holder>,
    silence: Silence,
    notes: Vec<Note>,
    period_ns: u64,
    next_look_ns: u64,
    next_tick_ns: u64,
}

/// See [`crate::run`].
pub(crate) fn run(options: &Options, sink: &mut dyn Sink) -> Result<Outcome, LaunchError> {
    if options.command.is_empty() {
        return Err(LaunchError::NoCommand);
    }
    let system = |what| move |source| LaunchError::System { what, source };
    let signals = Signals::block().map_err(system("wait for signals"))?;
    // Before anything is opened, so that it holds nothing open.
    let witness = Witness::start().ok();
    let (runtime, failure) = Runtime::open(options.runtime_dir.as_deref());
    let mut surroundings = Surroundings::new(&options.proc_root, &options.cgroup_root, options.budget);
    let mut tree = Tree::new(runtime.mark());
    let segments = Segments::new(Utf8Path::new(SHARED_MEMORY));
    let start_ns = clock::now_ns();
    let heaps = options.sampler.as_ref().and_then(|_| Heaps::open().ok());
    let board = Board::open().ok();
    let descriptors: Vec<_> =
        heaps.iter().map(Heaps::descriptor).chain(board.iter().map(Board::descriptor)).collect();
    let holder = options.overlay.as_ref().map(|overlay| Holder::start(overlay, &descriptors));
    let holder = holder.transpose().map_err(system("mount the copy of the project"))?;
    let opened_at = holder.as_ref().map_or_else(std::process::id, Holder::pid);
    let heap = heaps.as_ref().map(|heaps| heaps.path(opened_at));
    let memory = Memory { heap: heap.as_deref(), board: board.as_ref().map(|board| board.path(opened_at)) };
    let variables = launch::variables(options, &runtime, &memory);
    let hard = options.guard.as_ref().and_then(|guard| guard.hard.as_ref());
    let mut limit = hard.map(HardLimit::prepare).transpose().map_err(system("set the hard limit"))?;
    let child = launch::spawn(options, &variables, signals.before(), limit.as_mut(), holder.as_ref())?;
    let start = RunStart { root_pid: child.id(), start_ns, limits: surroundings.limits() };
    sink.started(&start);
    if let Some(limits) = surroundings.follow(start.root_pid) {
        sink.limited(&limits);
    }
    tree.plant(start.root_pid, start_ns);
    let guard = options.guard.as_ref();
    let guard = guard.map(|guard| Watch::new(guard, options, &surroundings, start.root_pid, start_ns));
    let until_ns = options.time_limit.map(|time| start_ns.saturating_add(time.as_nanos() as u64));
    let mut supervisor = Supervisor {
        sink,
        runtime,
        clients: Clients::default(),
        signals,
        witness,
        child,
        tree,
        sampler: Sampler::new(),
        surroundings,
        segments,
        next_segments_ns: start_ns,
        gpus: Gpus::default(),
        heaps,
        board,
        approach: Approach::default(),
        lines: Lines::new(options.progress),
        stop: Stop::after(options.epochs, until_ns),
        cut: None,
        signalled: None,
        output: options.streams.as_ref().map(|streams| streams.output.clone()),
        guard,
        limit,
        holder,
        silence: Silence::default(),
        notes: Vec::new(),
        period_ns: options.period.as_nanos() as u64,
        next_look_ns: start_ns,
        next_tick_ns: start_ns + TICK_NS,
    };
    supervisor.prepare(options, failure);
    let ending = supervisor.watch();
    Ok(supervisor.finish(ending))
}

impl Supervisor<'_> {
    /// Says what is known at once, and what will not be seen.
    fn prepare(&mut self, options: &Options, failure: Option<std::io::Error>) {
        self.tell_changes();
        let consequence =
            "memory is watched from outside alone, so that no container and no line can be named";
        let note = if options.outside_only {
            format!("{consequence}, as was asked for")
        } else if options.package.is_none() {
            format!(
                "caulk's Python package was not found beside the command: {consequence}; install caulk with pip, or \
                 set CAULK_PACKAGE to the package's folder"
            )
        } else if let Some(error) = failure {
            format!(
                "no socket could be made for the agents ({error}): {consequence}; set XDG_RUNTIME_DIR to a folder of \
                 your own that can be written"
            )
        } else {
            return;
        };
        self.note(NoteCode::OutsideOnly, note);
        self.silence.broken();
    }

    /// Runs until the command has ended.
    fn watch(&mut self) -> Ending {
        loop {
            let now = clock::now_ns();
            let looked = now >= self.next_look_ns;
            if looked {
                self.look(now);
            }
            if now >= self.next_tick_ns {
                self.next_tick_ns = now + TICK_NS;
                self.sink.tick(now);
                self.release_heaps(now);
            }
            self.keep_guard(now);
            if self.stop.is_late(now) {
                self.cut("time");
            }
            if self.stop.is_overdue(now) {
                self.send_to_training(Signal::KILL);
            }
            let ready = self.wait();
            if ready.clients.contains(&true) || ready.listener {
                self.listen(&ready, clock::now_ns());
            }
            let signalled = ready.signals && self.handle_signals();
            // A signal says when it has ended; should that one be lost, the next look notices.
            if (signalled || looked)
                && let Some(ending) = self.ending()
            {
                return ending;
            }
        }
    }

    /// Waits for something to do.
    fn wait(&self) -> Ready {
        let guard = self.guard.as_ref().map_or(u64::MAX, Watch::next_ns);
        let until = self.next_look_ns.min(self.next_tick_ns).min(guard).min(self.stop.next_ns());
        let left = until.saturating_sub(clock::now_ns());
        let timeout =
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let listener = self.runtime.descriptor().filter(|_| self.clients.have_room());
        let signals: BorrowedFd<'_> = self.signals.as_fd();
        let all = [signals].into_iter().chain(self.clients.descriptors()).chain(listener);
        let mut all: Vec<PollFd<'_>> = all.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        if poll(&mut all, Some(&timeout)).is_err() {
            // Interrupted or refused: nothing is known to be ready, and asking again at once could go on for ever.
            thread::sleep(Duration::from_millis(1));
            return Ready::default();
        }
        let mut ready = all.iter().map(|one| !one.revents().is_empty());
        let signals = ready.next().unwrap_or_default();
        let clients = ready.by_ref().take(self.clients.len()).collect();
        Ready { signals, clients, listener: ready.next().unwrap_or_default() }
    }

    /// Takes in what the agents say; true if there was anything. `woken_ns`: when the wait for them ended. An agent that hung up
    /// ended that wait, so its process was there until about then.
    fn listen(&mut self, ready: &Ready, woken_ns: u64) -> bool {
        let mut heard = Vec::new();
        let news = self.clients.hear(&ready.clients, &mut heard);
        if ready.listener {
            self.runtime.accept(&mut self.clients);
        }
        for item in heard {
            match item {
                Heard::Message(pid, message) => self.hear(pid, *message),
                Heard::HungUp(pid) => {
                    self.tree.hung_up(pid, woken_ns);
                    if let Some(heaps) = &mut self.heaps {
                        heaps.hung_up(pid);
                    }
                }
                Heard::Noted(reason) => self.note(NoteCode::OtherVersion, reason),
            }
        }
        news
    }

    fn hear(&mut self, pid: u32, message: Message) {
        let now = clock::now_ns();
        self.tree.hear(pid, &message, now);
        if let Some(heaps) = &mut self.heaps {
            heaps.hear(pid, &message);
        }
        self.tell_changes();
        if let Message::Hello(hello) = &message {
            self.silence.broken();
            if hello.protocol != PROTOCOL {
                let theirs = &hello.version;
                let text = format!(
                    "process {pid} has another caulk inside, {theirs} with protocol {} instead of {PROTOCOL}: what it says \
                     may be misread; install one version in both environments",
                    hello.protocol
                );
                self.note(NoteCode::OtherVersion, text);
            }
        }
        let mut ends = false;
        if let Message::Boundary(boundary) = &message
            && self.speaks_for_the_run(pid)
        {
            self.lines.boundary(pid, boundary, now, || self.surroundings.rooms());
            ends = self.stop.hear(boundary, now);
        }
        if matches!(&message, Message::Boundary(boundary) if boundary.cuda_reserved_bytes > 0) {
            self.gpus.are_used();
        }
        if let Some(guard) = &mut self.guard {
            guard.hear(pid, &message, now, &self.tree, &self.clients);
        }
        if matches!(message, Message::Standing(_)) {
            // Said twice a second: nothing for the recording.
            return;
        }
        let cut = matches!(message, Message::Boundary(_));
        self.sink.event(&AgentEvent { time_ns: now, pid, message });
        if cut {
            self.look_at_heap(pid, now);
        }
        if ends {
            self.cut("epochs");
        }
    }

    /// Ends the program on purpose.
    fn cut(&mut self, reason: &str) {
        let length = |path: &Utf8PathBuf| std::fs::metadata(path).ok().map(|file| file.len());
        self.cut = Some(Cut { output_bytes: self.output.as_ref().and_then(length) });
        self.clients.tell(&Command::Finish(Finish { reason: reason.into() }));
        self.send_to_training(Signal::TERM);
    }

    /// Sends a signal to the command and to the processes that train: a shell does not pass it on.
    fn send_to_training(&mut self, signal: Signal) {
        // Its number is the command's as long as nobody has waited for it.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let trains = |role| matches!(role, Role::Main | Role::Rank);
        let processes = self.tree.processes.iter();
        let training =
            processes.filter(|(_, process)| process.ended_ns.is_none() && trains(process.record.role));
        let training: Vec<u32> = training.map(|(pid, _)| *pid).collect();
        let others = training.into_iter().filter(|pid| *pid != self.child.id());
        for pid in std::iter::once(self.child.id()).chain(others) {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Lets the guard look and act, if it is time, and says what it does.
    fn keep_guard(&mut self, now: u64) {
        let Some(guard) = &mut self.guard else { return };
        if now >= guard.next_ns() {
            guard.look(now, &mut self.tree, &self.clients, &mut self.surroundings);
        }
        for line in guard.lines() {
            self.sink.act(&line);
        }
    }

    /// Takes in what a process's heap sampler has noted at its boundary.
    fn look_at_heap(&mut self, pid: u32, now: u64) {
        let told = self.heaps.as_mut().map(|heaps| heaps.look(pid));
        for message in told.unwrap_or_default() {
            self.sink.event(&AgentEvent { time_ns: now, pid, message });
        }
    }

    /// Takes in what a process held when it was killed.
    fn look_at_last_heap(&mut self, pid: u32) {
        let told = self.heaps.as_mut().map(|heaps| heaps.last(pid));
        let time_ns = clock::now_ns();
        for message in told.unwrap_or_default() {
            self.sink.event(&AgentEvent { time_ns, pid, message });
        }
    }

    /// Frees what processes that have ended had for their profiles, whether or not they were ever seen.
    fn release_heaps(&mut self, time_ns: u64) {
        let Self { heaps, tree, sink, .. } = self;
        if let Some(heaps) = heaps {
            let tell = |pid, message| sink.event(&AgentEvent { time_ns, pid, message });
            heaps.release(time_ns, &mut tree.reader, tell);
        }
    }

    /// The main process, or the first rank.
    fn speaks_for_the_run(&self, pid: u32) -> bool {
        let record = self.tree.processes.get(&pid).map(|process| &process.record);
        record.is_some_and(|record| matches!((record.role, record.index), (Role::Main, _) | (Role::Rank, 0)))
    }

    /// True if a child has changed its state.
    fn handle_signals(&mut self) -> bool {
        let mut child = false;
        while let Some(arrived) = self.signals.next() {
            match arrived {
                Arrived::Child => {
                    self.reap_orphans();
                    child = true;
                }
                Arrived::Sent(signal) => self.pass_on(signal, false),
                Arrived::Terminal(signal) => self.pass_on(signal, true),
            }
        }
        child
    }

    /// Passes a signal on unless the command has it already, as a member of the group.
    fn pass_on(&mut self, signal: i32, from_terminal: bool) {
        let to_group = match &mut self.witness {
            Some(witness) => {
                thread::sleep(SIGNAL_SPREAD);
                witness.saw(&mut self.tree.reader, signal)
            }
            None => from_terminal,
        };
        let (Some(child), Some(signal)) =
            (Pid::from_raw(self.child.id() as i32), Signal::from_named_raw(signal))
        else {
            return;
        };
        if let Some(guard) = &mut self.guard {
            guard.signalled(signal.as_raw(), clock::now_ns());
        }
        if !to_group && matches!(self.child.try_wait(), Ok(None)) {
            if signal == Signal::TERM {
                self.await_looks();
            }
            let _ = kill_process(child, signal);
        }
        if [Signal::TERM, Signal::INT, Signal::HUP].contains(&signal) {
            self.signalled = Some(signal.as_raw());
            let reason = death::name(signal.as_raw()).unwrap_or("signal").to_owned();
            self.clients.tell(&Command::Finish(Finish { reason }));
        }
    }

    fn ending(&mut self) -> Option<Ending> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(Ending::from(status)),
            Err(_) => Some(Ending::Unseen),
        }
    }

    /// As the first process of a container, caulk is the parent of every orphan and has to wait for it.
    fn reap_orphans(&mut self) {
        let own = std::process::id();
        if own != 1 {
            return;
        }
        let known = [Some(self.child.id()), self.witness.as_ref().map(Witness::pid)];
        let orphans = self.tree.children(own);
        for orphan in orphans.into_iter().filter(|&pid| !known.contains(&Some(pid))) {
            let _ = waitpid(Pid::from_raw(orphan as i32), WaitOptions::NOHANG);
        }
    }

    /// One look at everything.
    fn look(&mut self, now: u64) {
        let before = clock::cpu_ns();
        if let Some(limits) = self.surroundings.follow(self.tree.main()) {
            self.sink.limited(&limits);
        }
        let in_use = self.heaps.as_ref().map(Heaps::in_use).unwrap_or_default();
        let limits = self.surroundings.limits().each;
        for sample in self.sampler.look(&mut self.tree, limits, now) {
            let counted = in_use.get(&sample.pid).copied();
            self.sink.sample(&Sample { counted, ..*sample });
        }
        if now >= self.next_segments_ns {
            self.next_segments_ns = now + SEGMENTS_NS;
            self.segments.look(self.tree.living());
        }
        self.runtime.resume();
        let processes = self.tree.living().count() as u32;
        let system = self.surroundings.look(now, Sampler::resident(&self.tree), processes);
        self.sink.system(&system);
        self.watch_limits(now);
        for sample in self.gpus.look(now, || self.tree.living().collect()) {
            self.sink.gpu(&sample);
        }
        let reason = self.silence.look(&mut self.tree, now);
        let cost = clock::cpu_ns().saturating_sub(before).saturating_sub(self.sampler.rollup_cost_ns());
        self.tell_changes();
        self.release_heaps(now);
        if let Some(reason) = reason {
            self.note(NoteCode::NoAgent, reason);
        }
        let period = (cost * LOOK_DUTY).clamp(self.period_ns, LONGEST_PERIOD_NS.max(self.period_ns));
        // In step with the clock, unless that is behind already.
        self.next_look_ns = (self.next_look_ns + period).max(now + period / 2);
    }

    fn tell_changes(&mut self) {
        for record in self.tree.changes.drain(..) {
            self.sink.process(&record);
        }
        for pid in std::mem::take(&mut self.tree.gone) {
            self.look_at_last_heap(pid);
            if let Some(board) = &self.board {
                board.release(pid);
            }
        }
    }

    fn note(&mut self, code: NoteCode, text: String) {
        let note = Note::new(code, text);
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.sink.note(&note);
            self.notes.push(note);
        }
    }

    /// Takes in what is there already, and says how it ended. Daemons that the command left are not waited for.
    fn finish(mut self, ending: Ending) -> Outcome {
        let end_ns = clock::now_ns();
        // Every client, and whoever waits to be connected.
        loop {
            let everything =
                Ready { clients: vec![true; self.clients.len()], listener: true, signals: false };
            let before = self.clients.len();
            let news = self.listen(&everything, end_ns);
            if !(news || self.clients.len() > before) || clock::now_ns() >= end_ns + LAST_WORDS_NS {
                break;
            }
        }
        let mut death = death::classify(ending, &self.surroundings.evidence());
        self.stop.judge(&mut death);
        if let Some(reason) = self.silence.finish(end_ns) {
            self.note(NoteCode::NoAgent, reason);
        }
        if let count @ 1.. = self.tree.unrecorded() {
            let seen = self.tree.seen();
            let text = format!(
                "of {seen} processes the last {count} are recorded only where caulk is inside; of the others the sums tell"
            );
            self.note(NoteCode::ProcessesLeftOut, text);
        }
        if let Some(guard) = &self.guard {
            guard.see_off(&mut self.tree);
        }
        let processes = farewell::left(&mut self.tree, self.child.id(), end_ns);
        let left = Left { processes, segments: self.segments.left() };
        self.gpus.settle();
        self.tree.close();
        self.tell_changes();
        for pid in self.heaps.as_ref().map(Heaps::unsaid).unwrap_or_default() {
            self.look_at_last_heap(pid);
        }
        for line in self.heaps.as_mut().map(Heaps::losses).unwrap_or_default() {
            self.note(NoteCode::HeapProfile, line);
        }
        self.sink.tick(clock::now_ns());
        let guarded = self.guard.map(|mut guard| {
            guard.lines().iter().for_each(|line| self.sink.act(line));
            guard.finish(&mut death)
        });
        let (cut, signalled) = (self.cut, self.signalled);
        let exit_code = ending.exit_code();
        Outcome { death, exit_code, left, notes: self.notes, end_ns, cut, signalled, guarded }
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unseen,
        }
    }
}
