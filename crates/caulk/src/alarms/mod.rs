//! What is worth an interruption while a program runs: memory that grows, a GPU that is nearly full, steps that become slow,
//! heat. Each is told once; how it goes on, the report says.

mod pace;
mod processors;

use std::collections::{HashMap, HashSet};

use caulk_core::wire::{Boundary, Message, Unit};
use caulk_core::{AgentEvent, Bytes, GpuSample, Slowed};

use self::pace::Pace;
pub(crate) use self::processors::Processors;
use crate::cli::AlarmArgs;

/// Where a program has no epochs, it has begun after so long, in nanoseconds.
const WARM_NS: u64 = 60_000_000_000;
/// Processors are built for more heat than GPUs, in degrees.
const PROCESSORS_MORE: f64 = 10.0;

/// From which figures on there is an alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thresholds {
    /// Growth of a training process's resident memory, in bytes.
    pub(crate) growth: u64,
    /// Share of a GPU's memory that is taken.
    pub(crate) gpu: f64,
    /// Time of a step, in times of what was usual.
    pub(crate) slow: f64,
    /// Degrees Celsius.
    pub(crate) heat: f64,
}

impl Thresholds {
    /// Those that the user wants, if any.
    pub(crate) fn of(args: &AlarmArgs) -> Option<Self> {
        (!args.no_alarms).then(|| Self {
            growth: args.alarm_growth.0,
            gpu: args.alarm_gpu.0,
            slow: args.alarm_slow.0,
            heat: f64::from(args.alarm_heat),
        })
    }
}

/// A process's resident memory where its growth is counted from.
#[derive(Debug, Clone, Copy)]
struct Base {
    bytes: u64,
    unit: Unit,
}

/// Watches for them.
pub(crate) struct Alarms {
    thresholds: Option<Thresholds>,
    told: HashSet<&'static str>,
    began_ns: Option<u64>,
    bases: HashMap<u32, Base>,
    paces: HashMap<u32, Pace>,
    /// GPUs on which processes of the tree are known to compute.
    own: HashSet<u32>,
    processors: Processors,
}

impl Alarms {
    pub(crate) fn new(thresholds: Option<Thresholds>) -> Self {
        Self {
            thresholds,
            told: HashSet::new(),
            began_ns: None,
            bases: HashMap::new(),
            paces: HashMap::new(),
            own: HashSet::new(),
            processors: Processors::here(),
        }
    }

    /// Takes in what an agent says, and returns what there is to be told.
    pub(crate) fn event(&mut self, event: &AgentEvent) -> Vec<String> {
        let (Some(thresholds), Message::Boundary(boundary)) = (self.thresholds, &event.message) else {
            return Vec::new();
        };
        // Workers take over boundaries of others, and make no steps.
        if boundary.of != 0 {
            return Vec::new();
        }
        let grown = self.grown(event, boundary).filter(|grown| *grown >= thresholds.growth);
        let slow = self.paces.entry(event.pid).or_default().step(boundary);
        let slow = slow.filter(|slow| slow.factor >= thresholds.slow);
        let grown = grown.map(|grown| {
            let since = if self.bases[&event.pid].unit == Unit::Epoch {
                "its first epoch"
            } else {
                "its first minute"
            };
            format!("process {} has grown by {} since {since}", event.pid, Bytes(grown))
        });
        let slow = slow.map(|slow| {
            format!(
                "steps take {:.3} s, {:.1} times as long as before: memory that is swapped or reclaimed, heat, a data \
                 source that cannot keep up, or more work in each of them",
                slow.seconds, slow.factor
            )
        });
        [("growth", grown), ("slow", slow)]
            .into_iter()
            .filter_map(|(kind, text)| self.once(kind, text))
            .collect()
    }

    /// Takes in a look at a GPU, and returns what there is to be told. Where the driver says which of them the tree uses,
    /// others are nobody's business.
    pub(crate) fn gpu(&mut self, gpu: &GpuSample) -> Vec<String> {
        let Some(thresholds) = self.thresholds else { return Vec::new() };
        if gpu.pid.is_some() {
            self.own.insert(gpu.device);
            return Vec::new();
        }
        if !self.own.is_empty() && !self.own.contains(&gpu.device) {
            return Vec::new();
        }
        let (name, used) = (format!("GPU {}", gpu.device), gpu.used_bytes);
        let full = gpu.total_bytes.filter(|total| used as f64 >= thresholds.gpu * *total as f64);
        let full = full.map(|total| {
            format!("{name}: {} of {} are taken; a larger batch may not fit", Bytes(used), Bytes(total))
        });
        let celsius = gpu.celsius.map(f64::from);
        let hot = match (celsius, gpu.slowed) {
            (Some(celsius), Some(Slowed::Heat)) => {
                Some(format!("{name}: {celsius:.0} °C; it slows itself down"))
            }
            (Some(celsius), _) => hot(&name, celsius, thresholds.heat),
            (None, _) => None,
        };
        [("gpu", full), ("heat", hot)].into_iter().filter_map(|(kind, text)| self.once(kind, text)).collect()
    }

    /// Looks at processors, where it is time to, and returns what there is to be told.
    pub(crate) fn tick(&mut self, now_ns: u64) -> Vec<String> {
        let Some(thresholds) = self.thresholds else { return Vec::new() };
        let limit = thresholds.heat + PROCESSORS_MORE;
        let seen = self.processors.look(now_ns);
        let hot = seen.iter().find_map(|(name, celsius)| hot(name, *celsius, limit));
        self.once("heat", hot).into_iter().collect()
    }

    /// How much the process has grown since its first epoch; since its first minute as long as there are no epochs.
    fn grown(&mut self, event: &AgentEvent, boundary: &Boundary) -> Option<u64> {
        let began_ns = *self.began_ns.get_or_insert(event.time_ns);
        let (bytes, unit) = (boundary.rss_bytes, boundary.unit);
        let counts = bytes > 0 && (unit == Unit::Epoch || event.time_ns >= began_ns + WARM_NS);
        if !counts {
            return None;
        }
        let base = self.bases.entry(event.pid).or_insert(Base { bytes, unit });
        if unit == Unit::Epoch && base.unit != Unit::Epoch {
            *base = Base { bytes, unit };
        }
        // What is in use within an epoch is given back at its end.
        (base.unit != Unit::Epoch || unit == Unit::Epoch).then(|| bytes.saturating_sub(base.bytes))
    }

    fn once(&mut self, kind: &'static str, text: Option<String>) -> Option<String> {
        text.filter(|_| self.told.insert(kind))
    }
}

fn hot(name: &str, celsius: f64, limit: f64) -> Option<String> {
    (celsius >= limit).then(|| format!("{name}: {celsius:.0} °C; it may slow itself down"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLDS: Thresholds = Thresholds { growth: 2 << 30, gpu: 0.95, slow: 3.0, heat: 85.0 };

    fn boundary(unit: Unit, second: u64, megabytes: u64) -> AgentEvent {
        let time_ns = second * 1_000_000_000;
        let boundary = Boundary { unit, time_ns, rss_bytes: megabytes << 20, ..Boundary::default() };
        AgentEvent { time_ns, pid: 7, message: Message::Boundary(boundary) }
    }

    fn told(events: &[AgentEvent]) -> Vec<String> {
        let mut alarms = Alarms::new(Some(THRESHOLDS));
        events.iter().flat_map(|event| alarms.event(event)).collect()
    }

    #[test]
    fn growth_counts_from_the_first_epoch_and_is_told_once() {
        let epochs =
            [500, 3000, 4000, 5000, 6000].map(|megabytes| boundary(Unit::Epoch, megabytes, megabytes));
        assert_eq!(told(&epochs), ["process 7 has grown by 2.44 GB since its first epoch"]);
        assert_eq!(told(&epochs[1..4]), [""; 0]);
        let within = [
            boundary(Unit::Epoch, 0, 500),
            boundary(Unit::Steps, 100, 9000),
            boundary(Unit::Epoch, 200, 600),
        ];
        assert_eq!(told(&within), [""; 0], "what is given back at the end of the epoch is no alarm");
        let seconds = [0, 30, 90, 120].map(|second| boundary(Unit::Seconds, second, 1000 + second * 100));
        assert_eq!(told(&seconds), ["process 7 has grown by 2.93 GB since its first minute"]);
    }

    fn gpu(device: u32, celsius: u32) -> GpuSample {
        let (used_bytes, total_bytes) = (4000 << 20, Some(4096 << 20));
        GpuSample { device, used_bytes, total_bytes, celsius: Some(celsius), ..GpuSample::default() }
    }

    #[test]
    fn gpus_are_full_or_hot() {
        let mut alarms = Alarms::new(Some(THRESHOLDS));
        assert_eq!(
            alarms.gpu(&gpu(0, 91)),
            [
                "GPU 0: 3.91 GB of 4.00 GB are taken; a larger batch may not fit",
                "GPU 0: 91 °C; it may slow itself down"
            ]
        );
        assert_eq!(alarms.gpu(&gpu(0, 91)), [""; 0]);
        let slowed = GpuSample { slowed: Some(Slowed::Heat), used_bytes: 0, ..gpu(0, 80) };
        assert_eq!(
            Alarms::new(Some(THRESHOLDS)).gpu(&slowed),
            ["GPU 0: 80 °C; it slows itself down"],
            "the driver knows better than a threshold"
        );
    }

    #[test]
    fn gpus_of_others_are_nobodys_business() {
        let mut alarms = Alarms::new(Some(THRESHOLDS));
        assert_eq!(alarms.gpu(&GpuSample { pid: Some(7), ..gpu(1, 0) }), [""; 0]);
        assert_eq!(alarms.gpu(&gpu(0, 91)), [""; 0]);
        assert_eq!(alarms.gpu(&gpu(1, 91)).len(), 2);
    }

    #[test]
    fn processors_bear_more_heat() {
        assert_eq!(hot("cpu", 90.0, THRESHOLDS.heat + PROCESSORS_MORE), None);
        assert!(hot("cpu", 95.0, THRESHOLDS.heat + PROCESSORS_MORE).is_some());
    }

    #[test]
    fn nobody_is_warned_who_does_not_want_to_be() {
        let mut alarms = Alarms::new(None);
        let epochs = [500, 9000].map(|megabytes| boundary(Unit::Epoch, megabytes, megabytes));
        assert_eq!(epochs.iter().flat_map(|event| alarms.event(event)).count(), 0);
        assert_eq!((alarms.tick(0).len(), alarms.gpu(&gpu(0, 91)).len()), (0, 0));
    }
}
