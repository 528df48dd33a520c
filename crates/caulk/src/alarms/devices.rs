//! GPUs as `nvidia-smi` sees them, and processors as the kernel does. Asking takes a process: it is started at one moment and
//! read at a later one, so that nothing waits for it; and only where torch uses a GPU.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// Between two looks, in nanoseconds.
const PAUSE_NS: u64 = 30_000_000_000;
/// What is asked.
const ASK: [&str; 3] = [
    "nvidia-smi",
    "--query-gpu=index,memory.used,memory.total,temperature.gpu",
    "--format=csv,noheader,nounits",
];
/// Where the kernel tells temperatures.
const ZONES: &str = "/sys/class/thermal";
/// Beginnings of the names of zones that are processors.
const PROCESSORS: [&str; 4] = ["x86_pkg_temp", "cpu", "soc", "k10temp"];

/// What is known of a device.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// Of a GPU: memory used, and all of it, in bytes.
    pub(crate) memory: Option<(u64, u64)>,
    /// Degrees Celsius.
    pub(crate) degrees: Option<f64>,
}

/// Looks at them from time to time.
pub(crate) struct Devices {
    command: Vec<String>,
    zones: String,
    gpu: bool,
    next_ns: u64,
    asked: Option<Child>,
}

impl Devices {
    pub(crate) fn here() -> Self {
        let command = ASK.map(str::to_owned).to_vec();
        Self { command, zones: ZONES.into(), gpu: false, next_ns: 0, asked: None }
    }

    /// Torch uses a GPU: from now on they are asked.
    pub(crate) fn gpu_is_used(&mut self) {
        self.gpu = true;
    }

    /// What has been found out since the last look.
    pub(crate) fn look(&mut self, now_ns: u64) -> Vec<Device> {
        let mut devices = self.answered();
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + PAUSE_NS;
            devices.extend(processors(&self.zones));
            if self.gpu && self.asked.is_none() {
                self.ask();
            }
        }
        devices
    }

    fn ask(&mut self) {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => self.asked = Some(child),
            // Without it there is nobody to ask, now or later.
            Err(_) => self.gpu = false,
        }
    }

    /// The answer, if it is there. Somebody else may have waited for the process.
    fn answered(&mut self) -> Vec<Device> {
        let Some(mut child) = self.asked.take() else { return Vec::new() };
        if matches!(child.try_wait(), Ok(None)) {
            self.asked = Some(child);
            return Vec::new();
        }
        let mut text = String::new();
        let read = child.stdout.take().map(|mut stdout| stdout.read_to_string(&mut text));
        if matches!(read, Some(Ok(_))) { text.lines().filter_map(gpu).collect() } else { Vec::new() }
    }
}

/// `0, 3900, 4096, 71`: megabytes and degrees; what a card does not tell is `[N/A]`.
fn gpu(line: &str) -> Option<Device> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, used, total, degrees] = fields.as_slice() else { return None };
    let bytes = |text: &str| Some(text.parse::<u64>().ok()? << 20);
    Some(Device {
        name: format!("GPU {index}"),
        memory: Some((bytes(used)?, bytes(total)?)),
        degrees: degrees.parse().ok(),
    })
}

fn processors(zones: &str) -> Vec<Device> {
    let zones = fs::read_dir(zones).into_iter().flatten().flatten();
    let device = |zone: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(zone.path().join(name)).ok();
        let name = read("type")?.trim().to_owned();
        let known = PROCESSORS.iter().any(|processor| name.to_ascii_lowercase().starts_with(processor));
        let degrees = read("temp")?.trim().parse::<f64>().ok()? / 1000.0;
        known.then_some(Device { name, memory: None, degrees: Some(degrees) })
    };
    zones.filter_map(device).collect()
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_nvidia_smi_says() {
        let found = gpu("1, 3900, 4096, 71").expect("a line of it");
        assert_eq!(
            (found.name.as_str(), found.memory, found.degrees),
            ("GPU 1", Some((3900 << 20, 4096 << 20)), Some(71.0))
        );
        assert_eq!(gpu("0, 3900, 4096, [N/A]").and_then(|found| found.degrees), None);
        for line in ["", "No devices were found", "0, [N/A], [N/A], 71"] {
            assert_eq!(gpu(line), None, "{line}");
        }
    }

    #[test]
    fn nothing_waits_for_the_answer() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let zone = folder.path().join("thermal_zone0");
        fs::create_dir(&zone).expect("a writable folder");
        fs::write(zone.join("type"), "x86_pkg_temp\n").expect("a writable folder");
        fs::write(zone.join("temp"), "97000\n").expect("a writable folder");
        let command = ["sh", "-c", "echo '0, 3900, 4096, 71'"].map(str::to_owned).to_vec();
        let zones = folder.path().to_string_lossy().into_owned();
        let mut devices = Devices { command, zones, ..Devices::here() };
        assert_eq!(devices.look(0).len(), 1, "the processor; no GPU is used yet");
        devices.gpu_is_used();
        let mut found = devices.look(PAUSE_NS);
        assert_eq!(found[0].degrees, Some(97.0));
        while found.iter().all(|device| device.memory.is_none()) {
            sleep(Duration::from_millis(5));
            found = devices.look(PAUSE_NS);
        }
        assert_eq!(found[0].name, "GPU 0");
    }

    #[test]
    fn without_the_program_nobody_is_asked_again() {
        let mut devices = Devices { command: vec!["/nowhere/nvidia-smi".into()], ..Devices::here() };
        devices.gpu_is_used();
        devices.look(0);
        assert!(!devices.gpu && devices.asked.is_none());
    }
}
