//! What was measured, as curves over time: processes that follow one another under one number are one curve.

use std::collections::{BTreeMap, HashMap};

use caulk_core::wire::Message;
use caulk_core::{ProcessRef, Recording, Role};

use crate::buckets::Buckets;
use crate::words;

/// Spans of the finest level that is kept while reading.
const FINEST: usize = 4096;

/// What a curve is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Resident memory of all processes.
    Tree,
    /// Bytes in use of a process.
    InUse(Role, u32),
    /// Resident memory of a process.
    Resident(Role, u32),
    /// Memory of a GPU.
    Gpu(u32),
}

/// One curve.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) fine: Buckets,
}

impl Curve {
    /// Whether it is a curve of one of the processes that the page always shows.
    fn leads(&self) -> bool {
        matches!(
            self.kind,
            Kind::Tree
                | Kind::Resident(Role::Main, _)
                | Kind::InUse(Role::Main | Role::Rank, 0)
                | Kind::Gpu(_)
        )
    }
}

/// All curves of a run.
#[derive(Debug, Clone)]
pub(crate) struct Curves {
    /// Length of the run, in seconds.
    pub(crate) end_s: f64,
    start_ns: u64,
    /// Of memory of the machine.
    pub(crate) host: Vec<Curve>,
    /// Of GPUs.
    pub(crate) gpus: Vec<Curve>,
}

impl Curves {
    pub(crate) fn of(recording: &Recording) -> Self {
        let times = || {
            let samples = recording.samples.iter().map(|sample| sample.time_ns);
            let system = recording.system.iter().map(|sample| sample.time_ns);
            samples.chain(system).chain(recording.events.iter().map(|event| event.time_ns))
        };
        let start_ns = match recording.info.start_ns {
            0 => times().min().unwrap_or(0),
            start_ns => start_ns,
        };
        let end_ns = recording.info.end_ns.or_else(|| times().max()).unwrap_or(start_ns);
        let mut curves = Self {
            end_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
            start_ns,
            host: Vec::new(),
            gpus: Vec::new(),
        };
        curves.host = curves.of_processes(recording);
        curves.gpus = curves.of_gpus(recording);
        curves
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self, time_ns: u64) -> f64 {
        time_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    fn buckets(&self, readings: &[(u64, u64)]) -> Buckets {
        let readings = readings.iter().map(|(time_ns, bytes)| (self.seconds(*time_ns), *bytes as f64));
        Buckets::of(readings, self.end_s, FINEST)
    }

    fn of_processes(&self, recording: &Recording) -> Vec<Curve> {
        let mut readings: BTreeMap<Kind, Vec<(u64, u64)>> = BTreeMap::new();
        // The first look is at a process that is about to become the command.
        let tree = recording.system.iter().skip(1).map(|sample| (sample.time_ns, sample.tree_rss_bytes));
        let tree: Vec<_> = tree.filter(|(_, bytes)| *bytes > 0).collect();
        if recording.processes.len() > 1 {
            readings.insert(Kind::Tree, tree);
        }
        let roles: HashMap<u32, (Role, u32)> =
            recording.processes.iter().map(|record| (record.pid, (record.role, record.index))).collect();
        let of = |pid: u32| roles.get(&pid).copied().unwrap_or((Role::Other, pid));
        let mut of_pid: HashMap<u32, [Vec<(u64, u64)>; 2]> = HashMap::new();
        for sample in &recording.samples {
            let [resident, in_use] = of_pid.entry(sample.pid).or_default();
            resident.push((sample.time_ns, sample.rss_bytes));
            in_use.extend(sample.counted.map(|counted| (sample.time_ns, counted.bytes())));
        }
        for event in &recording.events {
            let Message::Boundary(boundary) = &event.message else { continue };
            let [resident, in_use] = of_pid.entry(event.pid).or_default();
            if boundary.rss_bytes > 0 {
                resident.push((boundary.time_ns, boundary.rss_bytes));
            }
            // Where nobody counts from outside.
            if boundary.malloc_bytes > 0 && boundary.arena_bytes == 0 {
                in_use.push((boundary.time_ns, boundary.malloc_bytes + boundary.small_bytes));
            }
        }
        for (pid, [resident, in_use]) in of_pid {
            let (role, index) = of(pid);
            readings.entry(Kind::Resident(role, index)).or_default().extend(resident);
            if matches!(role, Role::Main | Role::Rank) {
                readings.entry(Kind::InUse(role, index)).or_default().extend(in_use);
            }
        }
        readings.retain(|_, readings| !readings.is_empty());
        let curve = |(kind, readings): (&Kind, &Vec<(u64, u64)>)| Curve {
            name: name(kind),
            kind: kind.clone(),
            fine: self.buckets(readings),
        };
        readings.iter().map(curve).collect()
    }

    fn of_gpus(&self, recording: &Recording) -> Vec<Curve> {
        let mut readings: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for sample in recording.gpus.iter().filter(|sample| sample.pid.is_none()) {
            readings.entry(sample.device).or_default().push((sample.time_ns, sample.used_bytes));
        }
        let curve = |(device, readings): (&u32, &Vec<(u64, u64)>)| Curve {
            kind: Kind::Gpu(*device),
            name: format!("GPU {device}"),
            fine: self.buckets(readings),
        };
        readings.iter().map(curve).collect()
    }
}

/// The curves that a chart has room for: those that always lead, then the highest; and how many are left out.
pub(crate) fn shown(curves: &[Curve], most: usize) -> (Vec<&Curve>, usize) {
    let mut all: Vec<&Curve> = curves.iter().collect();
    all.sort_by(|a, b| b.leads().cmp(&a.leads()).then(b.fine.highest().total_cmp(&a.fine.highest())));
    let left_out = all.len().saturating_sub(most);
    all.truncate(most);
    all.sort_by(|a, b| a.kind.cmp(&b.kind));
    (all, left_out)
}

fn name(kind: &Kind) -> String {
    let of = |role: &Role, index: &u32| {
        words::process(&ProcessRef { role: role.as_str().into(), index: *index, count: 1 })
    };
    match kind {
        Kind::Tree => "all processes, resident".into(),
        Kind::Resident(role, index) => format!("{}, resident", of(role, index)),
        Kind::InUse(role, index) => format!("{}, in use", of(role, index)),
        Kind::Gpu(device) => format!("GPU {device}"),
    }
}
