//! Temperatures of processors, as the kernel tells them.

use std::fs;

/// Between two looks, in nanoseconds.
const PAUSE_NS: u64 = 30_000_000_000;
/// Where the kernel tells temperatures.
const ZONES: &str = "/sys/class/thermal";
/// Beginnings of the names of zones that are processors.
const PROCESSORS: [&str; 4] = ["x86_pkg_temp", "cpu", "soc", "k10temp"];

/// Looks at them from time to time.
pub(crate) struct Processors {
    zones: String,
    next_ns: u64,
}

impl Processors {
    pub(crate) fn here() -> Self {
        Self { zones: ZONES.into(), next_ns: 0 }
    }

    /// Names and degrees Celsius, where it is time to look.
    pub(crate) fn look(&mut self, now_ns: u64) -> Vec<(String, f64)> {
        if now_ns < self.next_ns {
            return Vec::new();
        }
        self.next_ns = now_ns + PAUSE_NS;
        let zones = fs::read_dir(&self.zones).into_iter().flatten().flatten();
        zones.filter_map(|zone| processor(&zone)).collect()
    }
}

fn processor(zone: &fs::DirEntry) -> Option<(String, f64)> {
    let read = |name: &str| fs::read_to_string(zone.path().join(name)).ok();
    let name = read("type")?.trim().to_owned();
    let known = PROCESSORS.iter().any(|processor| name.to_ascii_lowercase().starts_with(processor));
    let degrees = read("temp")?.trim().parse::<f64>().ok()? / 1000.0;
    known.then_some((name, degrees))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_told_from_other_zones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (number, kind, temperature) in [(0, "x86_pkg_temp", "97000"), (1, "acpitz", "30000")] {
            let zone = folder.path().join(format!("thermal_zone{number}"));
            fs::create_dir(&zone).expect("a writable folder");
            fs::write(zone.join("type"), format!("{kind}\n")).expect("a writable folder");
            fs::write(zone.join("temp"), format!("{temperature}\n")).expect("a writable folder");
        }
        let zones = folder.path().to_string_lossy().into_owned();
        let mut processors = Processors { zones, ..Processors::here() };
        assert_eq!(processors.look(0), [("x86_pkg_temp".to_owned(), 97.0)]);
        assert_eq!(processors.look(PAUSE_NS - 1), [], "it is not time yet");
        assert_eq!(processors.look(PAUSE_NS).len(), 1);
    }
}
