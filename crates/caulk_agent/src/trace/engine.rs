//! Which line made a watched container grow: lengths are compared at every event of a candidate, and growth is charged
//! to the line that the thread was on since the event before.
//!
//! Each thread has a stack of the candidates that it runs, with the line each of them is on. An exception leaves a
//! function without an event, so entries can be stale; they are recognised when something is charged, which is rare,
//! by walking the real frames.

use pyo3::prelude::*;

use super::candidates::Candidate;
use super::peak::Peak;
use super::seen::{Hit, Limits, PeakHit, Progress};
use super::source::{Running, Source};
use super::watch::{Known, Reading, Watch};
use crate::frames::{self, Place};
use crate::heap::{Address, AddressMap};

/// What happened in a candidate's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It starts, or a generator goes on, at this line.
    Start(u32),
    /// It comes to this line.
    Line(u32),
    /// It returns or yields.
    Leave,
}

/// A candidate that a thread runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Address of the frame object: an identity, never dereferenced.
    pub(super) frame: Address,
    pub(super) code: Address,
    pub(super) line: u32,
    /// Frames of other functions above this one; counted where tracing is switched by frame.
    pub(super) above: u32,
}

/// Where one thread is.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) stack: Vec<Entry>,
    /// Frame of the thread's last event.
    last: Address,
}

impl Track {
    fn position(&self, frame: Address) -> Option<usize> {
        self.stack.iter().rposition(|entry| entry.frame == frame)
    }

    fn apply(&mut self, frame: Address, code: Address, event: Event) {
        let known = self.position(frame);
        match event {
            Event::Start(line) => {
                // The address of a frame that was left by an exception can come again.
                if let Some(stale) = known {
                    self.stack.truncate(stale);
                }
                self.push(Entry { frame, code, line, above: 0 });
            }
            Event::Line(line) => match known {
                Some(index) => {
                    self.stack.truncate(index + 1);
                    self.stack[index].line = line;
                }
                None => self.push(Entry { frame, code, line, above: 0 }),
            },
            Event::Leave => {
                if let Some(index) = known {
                    self.stack.truncate(index);
                }
            }
        }
        self.last = frame;
    }

    /// Bound on entries: endless stale ones would be a leak of caulk's own.
    fn push(&mut self, entry: Entry) {
        if self.stack.len() >= 4096 {
            self.stack.remove(0);
        }
        self.stack.push(entry);
    }
}

/// One watch while it is armed.
struct Watched {
    id: u32,
    /// `None` when it is done: enough hits, or nobody else holds it.
    source: Option<Source>,
    last: Reading,
    /// For the head of a chain: the type of its links.
    link_type: Option<Address>,
    /// For a local: the frame of the last reading.
    frame: Address,
    /// Growth of the event that is being handled.
    pending: u64,
    /// Growth that nobody was charged with.
    unexplained: u64,
    /// Events that saw growth and charged it to somebody.
    charged: u32,
    tallies: Vec<Tally>,
}

/// Hits at one place.
struct Tally {
    hit: Hit,
    /// Another thread may have done it: used only where nothing surer is known.
    sure: bool,
}

/// Everything that is armed.
pub(super) struct Engine {
    pub(super) candidates: AddressMap<Candidate>,
    pub(super) tracks: AddressMap<Track>,
    watched: Vec<Watched>,
    peak: Option<Peak>,
    known: Known,
    limits: Limits,
    events: u64,
    /// Why it came to an end by itself.
    pub(super) stopped: Option<String>,
    /// Thread of the last event.
    last_thread: Address,
    /// References to drop when the engine is not in use: dropping may run the program's code.
    dropped: Vec<Source>,
}

impl Engine {
    /// Watches containers; those that cannot be read are left out.
    pub(super) fn new(
        py: Python<'_>,
        watches: Vec<Watch>,
        limits: Limits,
        candidates: AddressMap<Candidate>,
    ) -> Self {
        let known = Known::find(py);
        let watched = watches.into_iter().filter_map(|watch| Watched::new(py, watch, &known));
        Self { watched: watched.collect(), ..Self::idle(known, limits, candidates) }
    }

    /// Watches the bytes in use.
    pub(super) fn for_peak(py: Python<'_>, peak: Peak, candidates: AddressMap<Candidate>) -> Self {
        Self { peak: Some(peak), ..Self::idle(Known::find(py), Limits::default(), candidates) }
    }

    fn idle(known: Known, limits: Limits, candidates: AddressMap<Candidate>) -> Self {
        Self {
            candidates,
            tracks: AddressMap::default(),
            watched: Vec::new(),
            peak: None,
            known,
            limits,
            events: 0,
            stopped: None,
            last_thread: 0,
            dropped: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.peak.is_none()
    }

    /// Notes where every thread is now, so that functions already running are known.
    pub(super) fn enter_running(&mut self, py: Python<'_>) {
        for (thread, stack) in frames::all_frames(py) {
            let mut track = Track::default();
            for frame in stack.iter().rev() {
                let code = frames::code_of(frame).as_ptr() as Address;
                if self.candidates.contains_key(&code) {
                    let line = frames::line_of(frame);
                    track.push(Entry { frame: frame.as_ptr() as Address, code, line, above: 0 });
                } else if let Some(entry) = track.stack.last_mut() {
                    entry.above += 1;
                }
            }
            track.last = track.stack.last().map_or(0, |entry| entry.frame);
            self.tracks.insert(thread as Address, track);
        }
    }

    /// Handles one event of a candidate's frame, which runs on the calling thread.
    pub(super) fn handle(
        &mut self,
        py: Python<'_>,
        thread: Address,
        frame: Address,
        code: Address,
        event: Event,
    ) {
        self.events += 1;
        let running = Running { code, frame };
        let mut grown = false;
        for watched in &mut self.watched {
            grown |= watched.look(py, &self.known, running, &mut self.dropped);
        }
        if grown {
            self.charge(py, thread, running);
        }
        let track = self.tracks.entry(thread).or_default();
        if let (Some(peak), Some(candidate)) = (&mut self.peak, self.candidates.get(&code)) {
            let line = track.position(frame).map(|index| track.stack[index].line);
            peak.look(py, candidate, line, running);
        }
        track.apply(frame, code, event);
        self.last_thread = thread;
    }

    /// Charges the growth that was just seen to a line.
    fn charge(&mut self, py: Python<'_>, thread: Address, running: Running) {
        let found = self.responsible(py, thread, running);
        let rival = self.rival(thread);
        for watched in &mut self.watched {
            let growth = std::mem::take(&mut watched.pending);
            if growth == 0 {
                continue;
            }
            if found.is_none() && rival.is_none() {
                watched.unexplained += growth;
                continue;
            }
            watched.charged += 1;
            if let Some((place, user)) = &found {
                watched.record(place, user.as_ref(), growth, rival.is_none());
            }
            if let Some(rival) = &rival {
                watched.record(rival, Some(rival), growth, false);
            }
            if watched.charged >= self.limits.max_hits_per_watch {
                self.dropped.extend(watched.source.take());
            }
        }
    }

    /// Another thread that was inside a candidate at the event before this one: it may have gone on since.
    fn rival(&self, thread: Address) -> Option<Place> {
        let track = self.tracks.get(&self.last_thread).filter(|_| self.last_thread != thread)?;
        let entry = track.stack.last()?;
        Some(self.candidates.get(&entry.code)?.place_at(entry.line))
    }

    /// The line that ran since the thread's last event, and the innermost line of the user's code around it.
    fn responsible(
        &self,
        py: Python<'_>,
        thread: Address,
        running: Running,
    ) -> Option<(Place, Option<Place>)> {
        let track = self.tracks.get(&thread)?;
        let innermost = running.frame(py)?;
        let find = |entry: &Entry| frames::stack_of(Some(innermost.clone())).find(|frame| entry.is_at(frame));
        // The frame on top, if it is on the real stack still; or, left by an exception, if the last event was its own.
        // Otherwise the frame of this event, whose line made the calls.
        let top = *track.stack.last()?;
        let (entry, frame) = match find(&top) {
            Some(frame) => (top, Some(frame)),
            None if track.last == top.frame => (top, None),
            None => (track.stack[track.position(running.frame)?], Some(innermost.clone())),
        };
        let candidate = self.candidates.get(&entry.code)?;
        let mut place = candidate.place_at(entry.line);
        if let Some(frame) = &frame {
            // On 3.10 the function of a comprehension is only known from its caller.
            place.function = frames::place(frame).function;
        }
        let user = if candidate.user {
            Some(place.clone())
        } else {
            frames::user_places(frame.as_ref().map_or(Some(innermost), frames::caller_of)).next()
        };
        Some((place, user))
    }

    /// Growth since the last event: charged to the line that had it, if that was on this thread.
    pub(super) fn look_once_more(&mut self, py: Python<'_>, thread: Address) {
        let mut grown = false;
        for watched in &mut self.watched {
            grown |= watched.look(py, &self.known, Running::NOWHERE, &mut self.dropped);
        }
        if !grown {
            return;
        }
        let track = self.tracks.get(&thread).filter(|_| self.last_thread == thread);
        let entry = track.and_then(|track| track.stack.last().filter(|entry| entry.frame == track.last));
        let candidate = entry.and_then(|entry| Some((self.candidates.get(&entry.code)?, entry.line)));
        let place = candidate
            .filter(|(candidate, _)| candidate.user)
            .map(|(candidate, line)| candidate.place_at(line));
        for watched in &mut self.watched {
            match (std::mem::take(&mut watched.pending), &place) {
                (0, _) => {}
                (growth, Some(place)) => watched.record(place, Some(place), growth, true),
                (growth, None) => watched.unexplained += growth,
            }
        }
    }

    /// What was seen so far.
    pub(super) fn progress(&self, py: Python<'_>) -> Progress {
        let grown = || self.watched.iter().any(|watched| watched.has_grown_since(py, &self.known));
        Progress {
            hits: self.watched.iter().map(|watched| (watched.id, watched.charged)).collect(),
            unexplained: self.watched.iter().map(|watched| (watched.id, watched.unexplained)).collect(),
            events_seen: self.events,
            enough: !self.watched.is_empty() && self.watched.iter().all(|watched| watched.source.is_none()),
            blind: self.events == 0 && grown(),
            stopped: self.stopped.clone(),
        }
    }

    /// What nobody but a watch refers to any more, and what the watches have let go of.
    pub(super) fn take_dropped(&mut self, py: Python<'_>) -> Vec<Source> {
        for watched in &mut self.watched {
            if watched.source.as_ref().is_some_and(|source| source.is_abandoned(py)) {
                self.dropped.extend(watched.source.take());
            }
        }
        std::mem::take(&mut self.dropped)
    }

    /// The hits of all watches, the most frequent of each first.
    pub(super) fn hits(&mut self) -> Vec<Hit> {
        let threads = self.tracks.len() > 1;
        let mut hits: Vec<_> = self.watched.iter_mut().flat_map(|watched| watched.settle(threads)).collect();
        hits.sort_by_key(|hit| (hit.id, std::cmp::Reverse(hit.count)));
        hits
    }

    pub(super) fn take_peak(&mut self) -> Option<PeakHit> {
        self.peak.as_mut()?.best.take()
    }
}

impl Entry {
    fn is_at(&self, frame: &Bound<'_, PyAny>) -> bool {
        frame.as_ptr() as Address == self.frame && frames::code_of(frame).as_ptr() as Address == self.code
    }
}

impl Candidate {
    fn place_at(&self, line: u32) -> Place {
        Place { file: self.file.clone(), line, function: self.function.clone() }
    }
}

impl Watched {
    fn new(py: Python<'_>, watch: Watch, known: &Known) -> Option<Self> {
        let source = Source::of(py, watch.target, known)?;
        let last = source.read(py, known, &Reading::default(), Running::NOWHERE);
        let (frame, pending, unexplained, charged) = (0, 0, 0, 0);
        Some(Self {
            id: watch.id,
            source: Some(source),
            last,
            link_type: watch.links.then_some(last.value_type).filter(|link_type| *link_type != 0),
            frame,
            pending,
            unexplained,
            charged,
            tallies: Vec::new(),
        })
    }

    /// Reads the value and notes by how much it grew; false where it did not.
    fn look(&mut self, py: Python<'_>, known: &Known, running: Running, dropped: &mut Vec<Source>) -> bool {
        let Some(source) = &self.source else { return false };
        if source.is_abandoned(py) {
            dropped.extend(self.source.take());
            return false;
        }
        let now = source.read(py, known, &self.last, running);
        if now == self.last {
            return false;
        }
        // A local is another one in another frame of its function.
        let another = source.is_local_of(running.code)
            && std::mem::replace(&mut self.frame, running.frame) != running.frame;
        self.pending = if another { 0 } else { self.growth_to(&now) };
        self.last = now;
        self.pending > 0
    }

    fn has_grown_since(&self, py: Python<'_>, known: &Known) -> bool {
        let Some(source) = &self.source else { return false };
        self.growth_to(&source.read(py, known, &self.last, Running::NOWHERE)) > 0
    }

    fn growth_to(&self, now: &Reading) -> u64 {
        self.link_type.map_or_else(
            || now.growth_since(&self.last),
            |link_type| u64::from(now.links_to(&self.last, link_type)),
        )
    }

    fn record(&mut self, place: &Place, user: Option<&Place>, growth: u64, sure: bool) {
        let nowhere = Place { file: String::new(), line: 0, function: String::new() };
        let user = user.unwrap_or(&nowhere);
        let known = self.tallies.iter_mut().find(|tally| {
            tally.sure == sure
                && tally.hit.is_at(place)
                && (tally.hit.user_line, &tally.hit.user_file) == (user.line, &user.file)
        });
        if let Some(tally) = known {
            tally.hit.growth += growth;
            tally.hit.count += 1;
            return;
        }
        let hit = Hit {
            id: self.id,
            file: place.file.clone(),
            line: place.line,
            function: place.function.clone(),
            user_file: user.file.clone(),
            user_line: user.line,
            user_function: user.function.clone(),
            growth,
            count: 1,
        };
        self.tallies.push(Tally { hit, sure });
    }

    /// What is believed: the sure hits, or the most frequent of the others. With several threads, a hit that is rare
    /// beside another one is a thread that happened to run just after the one that did it.
    fn settle(&mut self, threads: bool) -> Vec<Hit> {
        let sure = self.tallies.iter().any(|tally| tally.sure);
        let mut hits: Vec<_> = std::mem::take(&mut self.tallies)
            .into_iter()
            .filter(|tally| tally.sure == sure)
            .map(|tally| tally.hit)
            .collect();
        let most = hits.iter().map(|hit| hit.count).max().unwrap_or(0);
        hits.retain(|hit| if sure { !threads || hit.count * 10 >= most } else { hit.count == most });
        hits
    }
}

impl Hit {
    fn is_at(&self, place: &Place) -> bool {
        self.line == place.line && self.file == place.file && self.function == place.function
    }
}
