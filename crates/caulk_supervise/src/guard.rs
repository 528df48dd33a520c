//! The guard of one life: measures, asks, ends; what to do when is decided by [`caulk_guard`].

mod asks;
mod checkpoints;
mod lines;
mod meter;
mod pressure;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

use camino::Utf8Path;
use caulk_core::wire::{self, Command, Finish, Message, Standing};
use caulk_core::{Death, Kill, Role};
use caulk_guard::{Action, Answer, Checkpoint, End, Guard, GuardLimit, Ladder, Room, Wish, is_out_of_memory};
use rustix::process::Signal;

use self::asks::{Asks, Way, send};
pub use self::checkpoints::Checkpoints;
use self::meter::Meter;
use self::pressure::{Pressure, kills_together};
use crate::hard::HardLimit;
use crate::proc::handles;
use crate::socket::Clients;
use crate::surroundings::Surroundings;
use crate::tree::Tree;
use crate::{Guarded, Guarding, Options, Restarts, clock, farewell};

/// Between two looks at files and handlers of signals, in nanoseconds; ten times as often while something is waited for.
const FILES_NS: u64 = 500_000_000;

/// The command's processes go before the supervisor when the kernel chooses one to kill: so much is added to their score.
const SCORE_ABOVE: i32 = 200;
const HIGHEST_SCORE: i32 = 1000;

/// Watches one life.
#[derive(Debug)]
pub(crate) struct Watch {
    settings: Guarding,
    engine: Guard,
    meter: Meter,
    pressure: Pressure,
    asks: Asks,
    root: u32,
    /// What agents have told last, by process.
    standings: BTreeMap<u32, Standing>,
    way: Option<Way>,
    newest: Option<Checkpoint>,
    gpu_total: u64,
    epochs: u64,
    next_ns: u64,
    next_files_ns: u64,
    /// A signal from outside has told the program to end.
    told: bool,
    does_not_fit: bool,
    ended_by_guard: bool,
    /// What was told to end has a handler for that, which may end it with any exit code.
    ends_by_itself: bool,
    out_of_memory: bool,
    said_way: bool,
    lines: Vec<String>,
}

impl Watch {
    /// Begins with a command that has just been started.
    pub(crate) fn new(
        settings: &Guarding,
        options: &Options,
        around: &Surroundings,
        root: u32,
        now_ns: u64,
    ) -> Self {
        let group = around.group();
        // In a group of its own the command goes alone.
        let early = kills_together(group.filter(|_| around.shares_group()));
        let ladder = if early { Ladder::EARLY } else { Ladder::USUAL };
        let pressure = Pressure::find(&options.proc_root, group);
        let mut watch = Self {
            settings: settings.clone(),
            engine: Guard::new(ladder, settings.grace, now_ns),
            meter: Meter::new(),
            pressure,
            asks: Asks::default(),
            root,
            standings: BTreeMap::new(),
            way: None,
            newest: None,
            gpu_total: 0,
            epochs: 0,
            next_ns: now_ns,
            next_files_ns: now_ns,
            told: false,
            does_not_fit: false,
            ended_by_guard: false,
            ends_by_itself: false,
            out_of_memory: false,
            said_way: settings.later,
            lines: Vec::new(),
        };
        raise_score(&options.proc_root, root);
        watch.look_at_files();
        let known = [
            group.is_some().then_some("its control group"),
            lines::has_own_limit(&options.proc_root).then_some("the processes' own limits (ulimit)"),
            watch.pressure.is_known().then_some("memory pressure"),
        ];
        if !settings.later {
            watch.lines.extend(lines::beginning(settings, &ladder, early, &known, watch.newest.as_ref()));
            watch.lines.extend(settings.hard.iter().flat_map(HardLimit::lines));
        }
        watch
    }

    /// When to look next.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// What to say to the user.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// One look at memory, and whatever is to be done.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        tree: &mut Tree,
        clients: &Clients,
        around: &mut Surroundings,
    ) {
        self.standings.retain(|pid, _| tree.processes.get(pid).is_some_and(|one| one.ended_ns.is_none()));
        if now_ns >= self.next_files_ns {
            self.next_files_ns = now_ns + if self.asks.waits() { FILES_NS / 10 } else { FILES_NS };
            let before = self.newest.take();
            self.look_at_files();
            if self.newest.is_some() && self.newest != before {
                self.engine.saved_itself(now_ns);
            }
            self.look_for_a_way(tree);
            let files = self.settings.checkpoints.pattern().is_some();
            if let Some((wish, answer)) =
                self.asks.look(clients, self.newest.as_ref(), self.steps(), files, now_ns)
            {
                self.answered(now_ns, wish, answer);
            }
        }
        let rooms = self.rooms(now_ns, tree, around);
        let pressure = self.pressure.look(now_ns);
        let actions = self.engine.read(now_ns, &rooms, pressure);
        self.say_way();
        for action in actions {
            self.act(now_ns, action, tree, clients);
        }
        let files_ns = if self.asks.waits() { self.next_files_ns } else { u64::MAX };
        self.next_ns = files_ns.min(now_ns + self.engine.pause().as_nanos() as u64);
    }

    fn rooms(&mut self, now_ns: u64, tree: &mut Tree, around: &mut Surroundings) -> Vec<Room> {
        let levels = self.meter.look(tree, now_ns);
        let budget = Room { limit: GuardLimit::Budget, used: levels.tree, most: self.settings.budget };
        let group = around.room_in_group().map(|(used, most)| Room { limit: GuardLimit::Cgroup, used, most });
        let used = self.standings.values().map(|standing| standing.cuda_reserved_bytes).sum();
        let gpu = self.settings.gpu_budget.and_then(|budget| budget.of(self.gpu_total));
        let gpu = gpu.map(|most| Room { limit: GuardLimit::Gpu, used, most });
        [budget].into_iter().chain(group).chain(gpu).chain(fullest_of_each(levels.rooms)).collect()
    }

    /// Takes in what an agent says.
    pub(crate) fn hear(&mut self, pid: u32, message: &Message, now_ns: u64, tree: &Tree, clients: &Clients) {
        match message {
            Message::Standing(standing) => {
                self.engine.stepped(now_ns, standing.steps);
                self.gpu_total = self.gpu_total.max(standing.cuda_total_bytes);
                self.epochs = self.epochs.max(standing.epochs);
                self.standings.insert(pid, standing.clone());
            }
            Message::Hello(_) => self.engine.is_seen(),
            Message::Answer(answer) => self.hear_answer(pid, answer, now_ns, clients),
            Message::Uncaught(error) => {
                // What ends a helper need not end the training.
                let role = tree.processes.get(&pid).map(|process| process.record.role);
                let trains = matches!(role, Some(Role::Main | Role::Rank));
                self.out_of_memory |= trains && is_out_of_memory(&error.types, &error.text);
            }
            _ => {}
        }
    }

    fn hear_answer(&mut self, pid: u32, answer: &wire::Answer, now_ns: u64, clients: &Clients) {
        if let Some((wish, answer)) = self.asks.hear(clients, pid, answer, now_ns) {
            self.look_at_files();
            self.tell_abilities();
            self.answered(now_ns, wish, answer);
        }
    }

    fn answered(&mut self, now_ns: u64, wish: Wish, answer: Answer) {
        self.lines.push(lines::answer(
            wish,
            answer,
            self.newest.as_ref(),
            &std::mem::take(&mut self.asks.complaints),
        ));
        self.engine.answered(now_ns, wish, answer);
        self.next_ns = now_ns;
    }

    /// Somebody outside has sent a signal to the program.
    pub(crate) fn signalled(&mut self, signal: i32, now_ns: u64) {
        let first = !std::mem::replace(&mut self.told, true);
        if first {
            self.lines.push(lines::told(signal));
        }
        if signal == libc::SIGTERM {
            self.engine.told_to_end(now_ns);
        }
        self.tell_abilities();
    }

    fn act(&mut self, now_ns: u64, action: Action, tree: &mut Tree, clients: &Clients) {
        match action {
            Action::Ask(Wish::Cleanup, standing) => {
                let pids: BTreeSet<u32> = self.standings.keys().copied().collect();
                if self.asks.clean_up(clients, &pids) {
                    self.lines.push(lines::ask_cleanup(&standing));
                } else {
                    self.engine.answered(now_ns, Wish::Cleanup, Answer::Failed);
                }
            }
            Action::Ask(Wish::Checkpoint, standing) => self.ask_to_save(now_ns, &standing, tree, clients),
            Action::Unanswered(wish) => {
                self.asks.give_up(clients);
                self.lines.push(lines::unanswered(wish));
            }
            Action::End(standing) => {
                self.ended_by_guard = true;
                self.lines.push(lines::end(&standing));
                self.tell_to_end(tree, clients);
            }
            Action::DoesNotFit(standing) => {
                self.does_not_fit = true;
                self.lines.push(lines::does_not_fit(&standing));
                self.tell_to_end(tree, clients);
            }
            Action::Kill => {
                self.lines.push(lines::kill(self.settings.grace));
                tree.living().for_each(|pid| send(pid, Signal::KILL));
            }
            Action::Warn(standing) => self.lines.push(lines::warn(&standing)),
            Action::GoOn(standing) => self.lines.push(lines::go_on(&standing)),
        }
    }

    fn ask_to_save(&mut self, now_ns: u64, standing: &caulk_guard::Standing, tree: &Tree, clients: &Clients) {
        let training = self.training(tree);
        match &self.way {
            Some(way) => {
                self.asks.save(clients, way, &training, self.newest.as_ref());
                self.next_files_ns = now_ns;
                self.lines.push(lines::ask_checkpoint(standing, way));
            }
            None => self.engine.answered(now_ns, Wish::Checkpoint, Answer::Failed),
        }
    }

    /// The launcher ends its ranks; a shell does not end what it has started.
    fn tell_to_end(&mut self, tree: &mut Tree, clients: &Clients) {
        let status = tree.reader.process(self.root, "status").unwrap_or_default();
        self.ends_by_itself = handles(status, libc::SIGTERM);
        clients.tell(&Command::Finish(Finish { reason: "guard".into() }));
        send(self.root, Signal::TERM);
        self.standings.keys().filter(|pid| **pid != self.root).for_each(|pid| send(*pid, Signal::TERM));
    }

    /// Processes that train, with their steps: the ranks, or the main process, which may not have told any.
    fn training(&self, tree: &Tree) -> BTreeMap<u32, u64> {
        let role = |pid: &u32| tree.processes.get(pid).map(|process| process.record.role);
        let of = |wanted: Role| {
            let those = self.standings.iter().filter(move |(pid, _)| role(pid) == Some(wanted));
            those.map(|(pid, standing)| (*pid, standing.steps)).collect::<BTreeMap<_, _>>()
        };
        let ranks = of(Role::Rank);
        let main = of(Role::Main);
        match (ranks.is_empty(), main.is_empty()) {
            (false, _) => ranks,
            (true, false) => main,
            (true, true) => BTreeMap::from([(tree.main(), 0)]),
        }
    }

    fn steps(&self) -> u64 {
        self.standings.values().map(|standing| standing.steps).max().unwrap_or(0)
    }

    fn look_at_files(&mut self) {
        for path in self.asks.told.drain(..) {
            self.settings.checkpoints.learn(&path);
        }
        self.newest = self.settings.checkpoints.newest();
    }

    /// By what the training can save its state, as far as that is known by now.
    fn look_for_a_way(&mut self, tree: &mut Tree) {
        let training = self.training(tree);
        let named = training.keys().filter_map(|pid| self.standings.get(pid));
        let named = named.map(|standing| standing.way.clone()).find(|way| !way.is_empty());
        let spares = self.standings.values().any(|standing| standing.spare_signal);
        let mut handles_it =
            |pid: u32| tree.reader.process(pid, "status").is_ok_and(|status| handles(status, libc::SIGUSR1));
        self.way = match named {
            Some(way) => Some(Way::Agent(way)),
            None if !spares && training.keys().copied().all(&mut handles_it) => Some(Way::Signal),
            None => None,
        };
        self.tell_abilities();
    }

    /// A program that has saved nothing yet is not ended, whatever it takes: its work would be lost.
    fn tell_abilities(&mut self) {
        let can_restart = match self.settings.restarts {
            Restarts::Never => false,
            Restarts::Always => true,
            Restarts::FromCheckpoint => self.newest.is_some(),
        };
        self.engine.can(self.way.is_some() && !self.told, can_restart && !self.told);
    }

    fn say_way(&mut self) {
        if self.engine.is_warm() && !self.said_way && !self.told {
            self.said_way = true;
            self.lines.push(lines::way(self.way.as_ref(), self.settings.checkpoints.pattern().is_some()));
        }
    }

    /// Waits for training processes that outlive what has started them, as they do under a shell, and kills them in the
    /// end: the next life needs their memory.
    pub(crate) fn see_off(&self, tree: &mut Tree) {
        if self.told {
            return;
        }
        let until = clock::now_ns() + self.settings.grace.as_nanos() as u64;
        let mut lives =
            |pid: u32| tree.reader.stat(pid).is_some_and(|stat| !stat.ended() && tree.is_same(pid, &stat));
        let mut left: Vec<u32> = self.standings.keys().copied().collect();
        loop {
            left.retain(|pid| lives(*pid));
            let over = clock::now_ns() >= until;
            if over {
                for pid in &left {
                    send(*pid, Signal::KILL);
                }
            }
            if over || left.is_empty() {
                return;
            }
            thread::sleep(farewell::LOOK);
        }
    }

    /// How this life ended.
    pub(crate) fn finish(self, death: &mut Death) -> Guarded {
        let end = match () {
            () if self.told => End::Told,
            () if self.does_not_fit => End::DoesNotFit,
            // It was done before the signal came, or let it pass.
            () if death.code == Some(0) && !self.ends_by_itself => End::Finished,
            // The kernel may have been faster than the guard.
            () if death.kill == Some(Kill::Oom) => End::Killed,
            () if self.ended_by_guard => End::Stopped,
            () if death.kill == Some(Kill::ProbablyOom) => End::Killed,
            () if self.out_of_memory => End::OutOfMemory,
            () => End::Failed,
        };
        if matches!(end, End::Stopped | End::DoesNotFit) {
            death.text.push_str(": the guard had told it to end");
            death.stopped = true;
        }
        Guarded {
            end,
            stepped: self.engine.has_stepped(),
            epochs: self.epochs,
            checkpoints: self.settings.checkpoints,
        }
    }
}

/// Of limits that each process has for itself, the one that is nearest to being reached.
fn fullest_of_each(rooms: Vec<Room>) -> impl Iterator<Item = Room> {
    let mut fullest: BTreeMap<GuardLimit, Room> = BTreeMap::new();
    for room in rooms {
        let known = fullest.entry(room.limit).or_insert(room);
        if room.most.saturating_sub(room.used) < known.most.saturating_sub(known.used) {
            *known = room;
        }
    }
    fullest.into_values()
}

/// Lets the kernel kill the command rather than the supervisor.
fn raise_score(proc_root: &Utf8Path, root: u32) {
    let own = fs::read_to_string(proc_root.join("self/oom_score_adj")).unwrap_or_default();
    let own: i32 = own.trim().parse().unwrap_or(0);
    let score = (own + SCORE_ABOVE).min(HIGHEST_SCORE);
    // Where that is not allowed, the kernel chooses the largest, which is the training in any case.
    let _ = fs::write(format!("/proc/{root}/oom_score_adj"), score.to_string());
}
