//! One life of the command under the guard: readings and answers in, actions out.
//!
//! The rungs are climbed one after the other as memory rises, each with its own pause until it is tried again. The end
//! comes once: the program is asked for a last checkpoint where it can make one, told to end, and killed if it does not.

use std::time::Duration;

use crate::ladder::{Fullest, Heights, Ladder, Rung};
use crate::{GuardLimit, Room};

/// What the program is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Collect, empty caches, give pages back.
    Cleanup,
    /// Save the state of the training.
    Checkpoint,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// So many bytes came back.
    Freed(u64),
    /// The state is saved.
    Saved,
    /// It could not be done.
    Failed,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// Tell the user where memory stands.
    Warn(Standing),
    /// Ask the program.
    Ask(Wish, Standing),
    /// No answer came in time.
    Unanswered(Wish),
    /// Tell the user that the limit is reached and that there is nothing to start again with.
    GoOn(Standing),
    /// The program needs more than the limit before its first step: end it for good.
    DoesNotFit(Standing),
    /// End the program, to start it again.
    End(Standing),
    /// It has not ended in time: kill it.
    Kill,
}

/// Where memory stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The fullest room.
    pub room: Room,
    /// Part of the headroom that is used.
    pub share: f64,
    /// Until it is full, in seconds, as it grows now.
    pub seconds: Option<f64>,
}

/// Steps and time after the first one until the baseline holds.
const WARM_STEPS: u64 = 20;
const WARM_NS: u64 = 2_000_000_000;

/// A program that makes no steps is warm after so long. Where it may make some later it must have come to rest, too: it may
/// be loading its data until then.
const UNSEEN_NS: u64 = 10_000_000_000;
const LOADING_NS: u64 = 600_000_000_000;

/// At rest is what would not be full in so many seconds, as it grows now.
const AT_REST_S: f64 = 500.0;

/// Pauses after one rung was tried until it is tried again: at first, and at most; they double while it does not help.
/// And between two warnings.
const FIRST_PAUSE_NS: u64 = 10_000_000_000;
const WARN_PAUSE_NS: u64 = 60_000_000_000;
const LONGEST_PAUSE_NS: u64 = 600_000_000_000;

/// A cleanup has helped if it gave back this part of the headroom.
const HELPED: f64 = 0.1;

/// A checkpoint that is expected to take so many seconds, before one has been made.
const FIRST_CHECKPOINT_S: f64 = 1.0;

/// A checkpoint this young, in nanoseconds, is good enough to end with.
const YOUNG_NS: u64 = 2_000_000_000;

/// A checkpoint under way is waited for until this much more than the limit is in use.
const BEYOND: f64 = 1.03;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Watching,
    Asked { wish: Wish, since_ns: u64 },
    Ending { kill_at_ns: u64 },
    Killed,
}

/// Waits longer each time.
#[derive(Debug, Clone, Copy, Default)]
struct Pause {
    length_ns: u64,
    until_ns: u64,
}

impl Pause {
    fn is_over(self, now_ns: u64) -> bool {
        now_ns >= self.until_ns
    }

    fn begin(&mut self, now_ns: u64, helped: bool) {
        self.length_ns = if helped { FIRST_PAUSE_NS } else { self.length_ns * 2 };
        self.length_ns = self.length_ns.clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
        self.until_ns = now_ns + self.length_ns;
    }
}

/// Watches one life.
#[derive(Debug, Clone)]
pub struct Guard {
    ladder: Ladder,
    grace_ns: u64,
    heights: Heights,
    doing: Doing,
    begun_ns: u64,
    /// When the first step was seen.
    first_step_ns: Option<u64>,
    steps: u64,
    warm: bool,
    /// Its steps would be seen.
    is_seen: bool,
    can_save: bool,
    can_restart: bool,
    headroom: u64,
    next_warning_ns: u64,
    cleaned: Pause,
    saved: Pause,
    saved_ns: Option<u64>,
    /// What a checkpoint takes, in seconds.
    saving_s: f64,
    said_to_go_on: bool,
}

impl Guard {
    /// A guard for a life that begins now. `grace`: how long an answer, and then the end, is waited for.
    pub fn new(ladder: Ladder, grace: Duration, now_ns: u64) -> Self {
        Self {
            ladder,
            grace_ns: grace.as_nanos() as u64,
            heights: Heights::default(),
            doing: Doing::Watching,
            begun_ns: now_ns,
            first_step_ns: None,
            steps: 0,
            warm: false,
            is_seen: false,
            can_save: false,
            can_restart: false,
            headroom: 0,
            next_warning_ns: 0,
            cleaned: Pause::default(),
            saved: Pause::default(),
            saved_ns: None,
            saving_s: FIRST_CHECKPOINT_S,
            said_to_go_on: false,
        }
    }

    /// Whether the program can be asked for a checkpoint, and whether there is something to start it again with.
    pub fn can(&mut self, save: bool, restart: bool) {
        (self.can_save, self.can_restart) = (save, restart);
    }

    /// There is an agent in the program: it will tell of steps, if there are any.
    pub fn is_seen(&mut self) {
        self.is_seen = true;
    }

    /// The program has made so many steps.
    pub fn stepped(&mut self, now_ns: u64, steps: u64) {
        self.steps = self.steps.max(steps);
        if steps > 0 {
            self.first_step_ns.get_or_insert(now_ns);
        }
    }

    /// The program has saved its state of its own accord: a good moment to end, if the end is near.
    pub fn saved_itself(&mut self, now_ns: u64) {
        self.saved_ns = Some(now_ns);
    }

    /// Whether it has made a step.
    pub fn has_stepped(&self) -> bool {
        self.first_step_ns.is_some()
    }

    /// The baseline has been found.
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// Whether the guard itself ends the life.
    pub fn is_ending(&self) -> bool {
        matches!(self.doing, Doing::Ending { .. } | Doing::Killed)
    }

    /// Time until the next reading.
    pub fn pause(&self) -> Duration {
        self.heights.pause()
    }

    /// Somebody outside has told the program to end: nothing is asked of it any more, and it is killed after the grace.
    pub fn told_to_end(&mut self, now_ns: u64) {
        if !self.is_ending() {
            self.doing = Doing::Ending { kill_at_ns: now_ns + self.grace_ns };
        }
    }

    /// The program has answered.
    pub fn answered(&mut self, now_ns: u64, wish: Wish, answer: Answer) {
        let Doing::Asked { wish: asked, since_ns } = self.doing else { return };
        if asked != wish {
            return;
        }
        self.doing = Doing::Watching;
        match (wish, answer) {
            (Wish::Cleanup, Answer::Freed(bytes)) => {
                self.cleaned.begin(now_ns, bytes as f64 >= self.headroom as f64 * HELPED);
            }
            (Wish::Cleanup, _) => self.cleaned.begin(now_ns, false),
            (Wish::Checkpoint, Answer::Saved) => {
                self.saving_s = now_ns.saturating_sub(since_ns) as f64 / 1e9;
                self.saved_ns = Some(now_ns);
                self.saved.begin(now_ns, false);
            }
            (Wish::Checkpoint, _) => self.saved.begin(now_ns, false),
        }
    }

    /// Takes in where memory stands, and says what to do.
    pub fn read(&mut self, now_ns: u64, rooms: &[Room], pressure: Option<f64>) -> Vec<Action> {
        let warming = self.first_step_ns.is_some() && !self.warm;
        self.heights.read(now_ns, rooms, warming);
        let at_rest = self.heights.fullest(false).is_some_and(|fullest| fullest.is_at_rest(AT_REST_S));
        self.warm |= self.is_warm_by(now_ns, at_rest);
        let Some(fullest) = self.heights.fullest(self.warm) else { return self.end_in_time(now_ns) };
        self.headroom = fullest.headroom;
        match self.doing {
            Doing::Watching => self.climb(now_ns, &fullest, pressure).into_iter().collect(),
            Doing::Asked { wish, since_ns } => self.wait(now_ns, wish, since_ns, &fullest),
            Doing::Ending { .. } | Doing::Killed => self.end_in_time(now_ns),
        }
    }

    fn is_warm_by(&self, now_ns: u64, at_rest: bool) -> bool {
        let age_ns = now_ns.saturating_sub(self.begun_ns);
        match self.first_step_ns {
            Some(first_ns) => self.steps >= WARM_STEPS || now_ns >= first_ns + WARM_NS,
            None if self.is_seen && !at_rest => age_ns >= LOADING_NS,
            None => age_ns >= UNSEEN_NS,
        }
    }

    fn climb(&mut self, now_ns: u64, fullest: &Fullest, pressure: Option<f64>) -> Option<Action> {
        let standing = Standing::of(fullest);
        if !self.warm {
            return fullest.room.is_full().then(|| self.too_early(now_ns, standing));
        }
        // Time is needed for a checkpoint that is asked for. What lies on a GPU grows in leaps, that tell no rate.
        let no_time = !self.can_save || fullest.room.limit == GuardLimit::Gpu;
        let needed = if no_time { 0.0 } else { self.saving_s };
        let rung = fullest.rung(&self.ladder, needed, pressure);
        let has_just_saved = rung >= Rung::Checkpoint && !self.can_save && self.has_young_checkpoint(now_ns);
        if (rung >= Rung::Restart || has_just_saved) && self.can_restart {
            return Some(self.end_well(now_ns, rung, standing));
        }
        if rung >= Rung::Checkpoint && self.can_save && self.saved.is_over(now_ns) {
            return Some(self.ask(now_ns, Wish::Checkpoint, standing));
        }
        if rung >= Rung::Full && !self.said_to_go_on {
            self.said_to_go_on = true;
            return Some(Action::GoOn(standing));
        }
        if rung >= Rung::Cleanup && self.cleaned.is_over(now_ns) {
            return Some(self.ask(now_ns, Wish::Cleanup, standing));
        }
        (rung == Rung::Warn && now_ns >= self.next_warning_ns).then(|| {
            self.next_warning_ns = now_ns + WARN_PAUSE_NS;
            Action::Warn(standing)
        })
    }

    /// The limit is reached before there is a baseline.
    fn too_early(&mut self, now_ns: u64, standing: Standing) -> Action {
        if self.first_step_ns.is_none() && now_ns < self.begun_ns + UNSEEN_NS {
            self.doing = Doing::Ending { kill_at_ns: now_ns + self.grace_ns };
            return Action::DoesNotFit(standing);
        }
        self.warm = true;
        self.end_well(now_ns, Rung::Full, standing)
    }

    /// Ends the life, after a checkpoint where there is the time for one.
    fn end_well(&mut self, now_ns: u64, rung: Rung, standing: Standing) -> Action {
        let is_time = rung < Rung::Full || !standing.room.is_beyond(BEYOND);
        if self.can_save && !self.has_young_checkpoint(now_ns) && is_time {
            return self.ask(now_ns, Wish::Checkpoint, standing);
        }
        self.end(now_ns, standing)
    }

    fn has_young_checkpoint(&self, now_ns: u64) -> bool {
        self.saved_ns.is_some_and(|saved_ns| now_ns < saved_ns + YOUNG_NS)
    }

    fn end(&mut self, now_ns: u64, standing: Standing) -> Action {
        if !self.can_restart {
            self.doing = Doing::Watching;
            let said = std::mem::replace(&mut self.said_to_go_on, true);
            return if said { Action::Warn(standing) } else { Action::GoOn(standing) };
        }
        self.doing = Doing::Ending { kill_at_ns: now_ns + self.grace_ns };
        Action::End(standing)
    }

    fn ask(&mut self, now_ns: u64, wish: Wish, standing: Standing) -> Action {
        self.doing = Doing::Asked { wish, since_ns: now_ns };
        Action::Ask(wish, standing)
    }

    /// Waits for an answer, as long as the grace and the memory last.
    fn wait(&mut self, now_ns: u64, wish: Wish, since_ns: u64, fullest: &Fullest) -> Vec<Action> {
        let room = fullest.room;
        let urgent = match wish {
            Wish::Cleanup => fullest.share >= self.ladder.restart,
            Wish::Checkpoint => room.is_beyond(BEYOND),
        };
        if now_ns < since_ns + self.grace_ns && !(urgent && self.can_restart) {
            return Vec::new();
        }
        self.doing = Doing::Watching;
        let mut actions = vec![Action::Unanswered(wish)];
        match wish {
            Wish::Cleanup => self.cleaned.begin(now_ns, false),
            Wish::Checkpoint => {
                self.saved.begin(now_ns, false);
                if fullest.share >= self.ladder.restart && self.can_restart {
                    actions.push(self.end(now_ns, Standing::of(fullest)));
                }
            }
        }
        actions
    }

    fn end_in_time(&mut self, now_ns: u64) -> Vec<Action> {
        match self.doing {
            Doing::Ending { kill_at_ns } if now_ns >= kill_at_ns => {
                self.doing = Doing::Killed;
                vec![Action::Kill]
            }
            _ => Vec::new(),
        }
    }
}

impl Standing {
    fn of(fullest: &Fullest) -> Self {
        Self { room: fullest.room, share: fullest.share, seconds: fullest.seconds }
    }

    /// `3.2 GB of 4.0 GB, the budget (82 % of the headroom; full in 3 min)`.
    pub fn text(&self) -> String {
        let soon = self.seconds.filter(|seconds| *seconds < 86_400.0).map(|seconds| match seconds {
            s if s < 120.0 => format!("; full in {s:.0} s as it grows now"),
            s if s < 7200.0 => format!("; full in {:.0} min as it grows now", s / 60.0),
            s => format!("; full in {:.0} h as it grows now", s / 3600.0),
        });
        if self.room.is_full() {
            return self.room.text();
        }
        let (room, share) = (self.room.text(), self.share * 100.0);
        format!("{room} ({share:.0} % of the headroom{})", soon.unwrap_or_default())
    }
}
