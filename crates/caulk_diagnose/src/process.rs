//! One process of the recording: everything that its agent said, by kind.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use caulk_core::wire::{
    BackwardSite, Boundary, ContainerLen, Contents, Garbage, GpuLedger, GpuMade, HeapLive, HeapStack, Hello,
    Holder, LoopSite, Message, Note, Opened, Peak, TraceHit, TraceState, Trim, Types, Unit,
};
use caulk_core::{ProcessRecord, ProcessRef, Recording, Role};

/// A process with an agent in it.
pub(crate) struct Process<'a> {
    pub(crate) record: ProcessRecord,
    pub(crate) hello: Option<&'a Hello>,
    pub(crate) boundaries: Vec<&'a Boundary>,
    pub(crate) lengths: BTreeMap<u32, Vec<&'a ContainerLen>>,
    pub(crate) holders: BTreeMap<u32, &'a Holder>,
    pub(crate) contents: BTreeMap<u32, Vec<&'a Contents>>,
    pub(crate) hits: BTreeMap<u32, Vec<&'a TraceHit>>,
    pub(crate) traces: Vec<&'a TraceState>,
    pub(crate) loops: Vec<&'a LoopSite>,
    /// The newest count of each line.
    pub(crate) backwards: Vec<&'a BackwardSite>,
    pub(crate) peaks: Vec<&'a Peak>,
    /// Every census, by type.
    pub(crate) types: Vec<&'a Types>,
    /// What waited for the collector, at every census.
    pub(crate) garbage: Vec<&'a Garbage>,
    /// What malloc gave back when it was asked.
    pub(crate) trims: Vec<&'a Trim>,
    /// Stacks of the heap profile.
    pub(crate) stacks: BTreeMap<u32, &'a HeapStack>,
    /// The heap profile at each boundary.
    pub(crate) heaps: Vec<&'a HeapLive>,
    /// What torch and the driver have of GPUs, at each boundary.
    pub(crate) ledgers: Vec<&'a GpuLedger>,
    /// What torch recorded of GPUs, the last time.
    pub(crate) on_gpu: Option<&'a GpuMade>,
    /// What threads and open files were, each time that they were looked at.
    pub(crate) opened: Vec<&'a Opened>,
    pub(crate) notes: Vec<&'a Note>,
}

impl<'a> Process<'a> {
    /// Every process whose agent said something, in order of appearance. One that runs another program in its place
    /// (`exec`) is two.
    pub(crate) fn all(recording: &'a Recording) -> Vec<Self> {
        let mut processes: Vec<Self> = Vec::new();
        let mut current: HashMap<u32, usize> = HashMap::new();
        for event in &recording.events {
            let says_hello = matches!(event.message, Message::Hello(_));
            let known = current.get(&event.pid).copied();
            let known = known.filter(|at| !(says_hello && processes[*at].has_begun()));
            let at = known.unwrap_or_else(|| {
                processes.push(Self::new(recording, event.pid));
                processes.len() - 1
            });
            current.insert(event.pid, at);
            processes[at].take(&event.message);
        }
        processes.iter_mut().for_each(Self::forget_what_it_followed);
        processes
    }

    /// A process that has followed another one's boundaries and trains by itself in the end counts anew from there.
    fn forget_what_it_followed(&mut self) {
        if self.boundaries.last().is_some_and(|last| last.of == 0 && last.steps > 0) {
            self.boundaries.retain(|boundary| boundary.of == 0);
            let first = self.boundaries.first().map_or(0, |boundary| boundary.seq);
            self.opened.retain(|opened| opened.boundary >= first);
        }
    }

    /// When its last boundary was.
    pub(crate) fn seen_until(&self) -> Option<u64> {
        self.boundaries.last().map(|boundary| boundary.time_ns)
    }

    /// Has it gone on for as good as all of the time until then, since it began?
    pub(crate) fn lives_at(&self, end_ns: u64) -> bool {
        let begun = self.boundaries.first().map_or(end_ns, |boundary| boundary.time_ns);
        let span = end_ns.saturating_sub(begun);
        self.seen_until().is_some_and(|last| end_ns.saturating_sub(last) <= span / 5)
    }

    /// Has its agent told who it is, and seen a boundary?
    fn has_begun(&self) -> bool {
        self.hello.is_some() && !self.boundaries.is_empty()
    }

    fn new(recording: &Recording, pid: u32) -> Self {
        let known = recording.processes.iter().find(|record| record.pid == pid).cloned();
        let record =
            known.unwrap_or_else(|| ProcessRecord { pid, role: Role::Other, ..ProcessRecord::default() });
        Self {
            record,
            hello: None,
            boundaries: Vec::new(),
            lengths: BTreeMap::new(),
            holders: BTreeMap::new(),
            contents: BTreeMap::new(),
            hits: BTreeMap::new(),
            traces: Vec::new(),
            loops: Vec::new(),
            backwards: Vec::new(),
            peaks: Vec::new(),
            types: Vec::new(),
            garbage: Vec::new(),
            trims: Vec::new(),
            stacks: BTreeMap::new(),
            heaps: Vec::new(),
            ledgers: Vec::new(),
            on_gpu: None,
            opened: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn take(&mut self, message: &'a Message) {
        match message {
            Message::Hello(hello) => self.hello = Some(hello),
            Message::Boundary(boundary) => self.boundaries.push(boundary),
            Message::ContainerLen(length) => self.lengths.entry(length.id).or_default().push(length),
            Message::Holder(holder) => drop(self.holders.insert(holder.id, holder)),
            Message::Contents(contents) => self.contents.entry(contents.id).or_default().push(contents),
            Message::TraceHit(hit) => self.hits.entry(hit.id).or_default().push(hit),
            Message::TraceState(state) => self.traces.push(state),
            Message::LoopSite(site) => self.loops.push(site),
            Message::BackwardSite(site) => {
                let same = |other: &&&BackwardSite| {
                    (&other.file, other.line, other.retain_graph, other.create_graph)
                        == (&site.file, site.line, site.retain_graph, site.create_graph)
                };
                match self.backwards.iter().position(|other| same(&other)) {
                    Some(at) => self.backwards[at] = site,
                    None => self.backwards.push(site),
                }
            }
            Message::Peak(peak) => self.peaks.push(peak),
            Message::HeapStack(stack) => drop(self.stacks.insert(stack.id, stack)),
            Message::HeapLive(live) => self.heaps.push(live),
            Message::Note(note) => self.notes.push(note),
            Message::Types(types) => self.types.push(types),
            Message::Garbage(garbage) => self.garbage.push(garbage),
            Message::GpuLedger(ledger) => self.ledgers.push(ledger),
            Message::GpuMade(made) => self.on_gpu = Some(made),
            Message::Opened(opened) => self.opened.push(opened),
            Message::Trim(trim) => self.trims.push(trim),
            Message::Bye(_)
            | Message::Rank(_)
            | Message::Standing(_)
            | Message::Answer(_)
            | Message::GpuRefusal(_)
            | Message::Uncaught(_) => {}
        }
    }

    pub(crate) fn reference(&self) -> ProcessRef {
        ProcessRef { role: self.record.role.as_str().into(), index: self.record.index, count: 1 }
    }

    /// Numbers of the things that were followed, those of peaks left out.
    pub(crate) fn ids(&self) -> Vec<u32> {
        let of_peaks: BTreeSet<u32> = self.peaks.iter().flat_map(|peak| peak.ids.iter().copied()).collect();
        self.lengths.keys().copied().filter(|id| !of_peaks.contains(id)).collect()
    }

    pub(crate) fn censuses(&self) -> usize {
        self.boundaries.iter().filter(|boundary| boundary.census_objects > 0).count()
    }

    /// Boundaries of one unit.
    pub(crate) fn of_unit(&self, unit: Unit) -> impl Iterator<Item = &'a Boundary> {
        self.boundaries.iter().copied().filter(move |boundary| boundary.unit == unit)
    }

    pub(crate) fn boundary(&self, seq: u32) -> Option<&'a Boundary> {
        // Sequence numbers rise, with gaps where messages were lost or another process was followed.
        let at = self.boundaries.binary_search_by_key(&seq, |boundary| boundary.seq).ok()?;
        Some(self.boundaries[at])
    }

    /// Files of the user that the process is known to run.
    pub(crate) fn files(&self) -> Vec<&'a str> {
        let loops = self.loops.iter().map(|site| site.file.as_str());
        let backwards = self.backwards.iter().map(|site| site.file.as_str());
        let hits = self.hits.values().flatten().map(|hit| hit.user_file.as_str());
        let holders = self.holders.values().map(|holder| holder.file.as_str());
        let links = self.garbage.iter().flat_map(|garbage| &garbage.links).map(|link| link.file.as_str());
        let files: BTreeSet<&str> = loops.chain(backwards).chain(hits).chain(holders).chain(links).collect();
        files.into_iter().filter(|file| !file.is_empty()).collect()
    }
}
