//! Looks at GPUs: begun once torch uses one, and never waited for.
//!
//! A driver that hangs blocks whoever asks it. So a thread of its own asks, and the supervisor takes what is there. Where
//! there is no driver, or it has nothing to say, nothing is said and nobody asks again.

mod device;
mod nvml;

use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use caulk_core::GpuSample;

use device::{Driver, Gpu};

/// Between two looks, at first and later, in nanoseconds: a short run has more than one, too.
const FIRST_PAUSE_NS: u64 = 1_000_000_000;
const PAUSE_NS: u64 = 10_000_000_000;
/// An answer that is waited for at the end.
const LAST_ANSWER: Duration = Duration::from_millis(200);

/// Looks from time to time.
#[derive(Debug, Default)]
pub(crate) struct Gpus {
    asking: Asking,
    pause_ns: u64,
    next_ns: u64,
}

#[derive(Debug, Default)]
enum Asking {
    /// No GPU is used as far as is known.
    #[default]
    NotYet,
    /// A thread waits to be asked.
    Thread { ask: SyncSender<()>, answers: Receiver<Vec<Gpu>>, open: bool },
    /// There is nobody to ask.
    InVain,
}

impl Gpus {
    /// Torch uses a GPU: from now on they are looked at.
    pub(crate) fn are_used(&mut self) {
        self.ask_with(nvml::Nvml::open);
    }

    fn ask_with<D: Driver + 'static>(&mut self, open: fn() -> Option<D>) {
        if !matches!(self.asking, Asking::NotYet) {
            return;
        }
        let (ask, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let serve = move || {
            // Not shut down at the end: that would go on while the process ends.
            let mut driver = ManuallyDrop::new(open()?);
            while asked.recv().is_ok() {
                answer.send(driver.look()?).ok()?;
            }
            Some(())
        };
        // It ends with the supervisor, or where there is nothing to be had. Nobody waits for it: the driver may hang.
        let started = thread::Builder::new().name("caulk-gpus".into()).spawn(serve);
        self.asking = started.map_or(Asking::InVain, |_| Asking::Thread { ask, answers, open: false });
    }

    /// What has been seen since the last look: what the tree's `own` processes have, then the devices.
    pub(crate) fn look(&mut self, now_ns: u64, own: impl FnOnce() -> HashSet<u32>) -> Vec<GpuSample> {
        let Asking::Thread { ask, answers, open } = &mut self.asking else { return Vec::new() };
        let seen = match answers.try_recv() {
            Ok(devices) => {
                *open = false;
                samples(&devices, now_ns, &own())
            }
            Err(TryRecvError::Empty) => Vec::new(),
            Err(TryRecvError::Disconnected) => {
                self.asking = Asking::InVain;
                return Vec::new();
            }
        };
        if now_ns >= self.next_ns {
            self.pause_ns = (2 * self.pause_ns).clamp(FIRST_PAUSE_NS, PAUSE_NS);
            self.next_ns = now_ns + self.pause_ns;
            // Where the last question is not answered yet, it is this one, too.
            *open |= ask.try_send(()).is_ok();
        }
        seen
    }

    /// Waits a moment for a question that is open: the driver's library must not be at work while the process ends.
    pub(crate) fn settle(&mut self) {
        if let Asking::Thread { answers, open: true, .. } = &self.asking {
            let _ = answers.recv_timeout(LAST_ANSWER);
        }
        self.asking = Asking::InVain;
    }
}

/// Whose devices they are is known before what is said of them.
fn samples(devices: &[Gpu], now_ns: u64, own: &HashSet<u32>) -> Vec<GpuSample> {
    let parts = devices.iter().flat_map(|gpu| gpu.parts(now_ns, own));
    parts.chain(devices.iter().map(|gpu| gpu.whole(now_ns))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use caulk_core::Slowed;

    use super::*;

    /// Two devices; the second look finds no driver any more.
    struct Twice(u32);

    impl Driver for Twice {
        fn look(&mut self) -> Option<Vec<Gpu>> {
            self.0 += 1;
            let first = Gpu {
                used_bytes: 900,
                total_bytes: 1000,
                processes: vec![(7, 300), (8, 400)],
                slowed: Some(Slowed::Heat),
                ..Gpu::default()
            };
            let second = Gpu { device: 1, total_bytes: 1000, ..Gpu::default() };
            (self.0 == 1).then(|| vec![first, second])
        }
    }

    /// Looks until something is seen or there is nobody to ask.
    fn until_seen(gpus: &mut Gpus, now_ns: u64) -> Vec<GpuSample> {
        loop {
            let seen = gpus.look(now_ns, || HashSet::from([7, 9]));
            if !seen.is_empty() || matches!(gpus.asking, Asking::InVain) {
                return seen;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn devices_and_the_parts_of_own_processes_are_seen() {
        let mut gpus = Gpus::default();
        assert_eq!(gpus.look(0, HashSet::new), []);
        gpus.ask_with(|| Some(Twice(0)));
        let seen = until_seen(&mut gpus, 5);
        let told: Vec<_> = seen.iter().map(|one| (one.device, one.pid, one.used_bytes)).collect();
        assert_eq!(told, [(0, Some(7), 300), (0, None, 900), (1, None, 0)]);
        assert_eq!((seen[1].total_bytes, seen[1].slowed), (Some(1000), Some(Slowed::Heat)));
        assert_eq!(gpus.look(6, HashSet::new), [], "it is not time yet");
        assert_eq!(until_seen(&mut gpus, 5 + PAUSE_NS), [], "the driver is gone");
        assert!(matches!(gpus.asking, Asking::InVain));
    }

    #[test]
    fn without_a_driver_nobody_is_asked_again() {
        let mut gpus = Gpus::default();
        gpus.ask_with(|| None::<Twice>);
        assert_eq!(until_seen(&mut gpus, 0), []);
        gpus.ask_with(|| Some(Twice(0)));
        assert_eq!(gpus.look(PAUSE_NS, HashSet::new), []);
    }

    #[test]
    fn a_driver_that_hangs_holds_nobody_up() {
        struct Hangs;
        impl Driver for Hangs {
            fn look(&mut self) -> Option<Vec<Gpu>> {
                loop {
                    thread::park();
                }
            }
        }
        let mut gpus = Gpus::default();
        gpus.ask_with(|| Some(Hangs));
        for minute in 0..10 {
            assert_eq!(gpus.look(minute * 60_000_000_000, HashSet::new), []);
        }
        gpus.settle();
    }

    #[test]
    fn this_machine_answers_or_is_silent() {
        let mut gpus = Gpus::default();
        gpus.are_used();
        for one in until_seen(&mut gpus, 0).iter().filter(|one| one.pid.is_none()) {
            assert!(one.total_bytes.is_some_and(|total| total >= one.used_bytes), "{one:?}");
        }
    }
}
