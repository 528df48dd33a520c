//! NVIDIA's management library, loaded where the machine has it: what `nvidia-smi` asks, too.
//!
//! It is part of the driver. Begun after the program has begun CUDA, it wakes no device that sleeps.

use caulk_core::Slowed;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml as Library};

use super::device::{Driver, Gpu};

pub(super) struct Nvml(Library);

impl Nvml {
    /// `None` without a driver of NVIDIA's.
    pub(super) fn open() -> Option<Self> {
        Library::init().ok().map(Self)
    }
}

impl Driver for Nvml {
    fn look(&mut self) -> Option<Vec<Gpu>> {
        let count = self.0.device_count().ok()?;
        let devices: Vec<Gpu> = (0..count).filter_map(|device| gpu(&self.0, device)).collect();
        // None of them answers, because they are lost or may not be seen: that does not change.
        (!devices.is_empty()).then_some(devices)
    }
}

/// What cannot be told of its memory is no use; anything else a device may keep to itself.
fn gpu(library: &Library, index: u32) -> Option<Gpu> {
    let device = library.device_by_index(index).ok()?;
    let memory = device.memory_info().ok()?;
    Some(Gpu {
        device: index,
        name: device.name().unwrap_or_default(),
        uuid: device.uuid().unwrap_or_default(),
        used_bytes: memory.used,
        total_bytes: memory.total,
        celsius: device.temperature(TemperatureSensor::Gpu).ok(),
        busy_percent: device.utilization_rates().ok().map(|rates| rates.gpu),
        slowed: device.current_throttle_reasons().ok().and_then(slowed),
        processes: processes(&device),
    })
}

/// Older drivers know an older form of the question.
fn processes(device: &Device<'_>) -> Vec<(u32, u64)> {
    let found = match device.running_compute_processes() {
        Err(NvmlError::FailedToLoadSymbol(_)) => device.running_compute_processes_v2(),
        found => found,
    };
    found.unwrap_or_default().iter().filter_map(part).collect()
}

fn part(process: &ProcessInfo) -> Option<(u32, u64)> {
    match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some((process.pid, bytes)),
        UsedGpuMemory::Unavailable => None,
    }
}

/// The gravest reason; settings of the user's and a device without work are none.
fn slowed(reasons: ThrottleReasons) -> Option<Slowed> {
    let heat = ThrottleReasons::HW_THERMAL_SLOWDOWN | ThrottleReasons::SW_THERMAL_SLOWDOWN;
    let hardware = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
    let all =
        [(heat, Slowed::Heat), (hardware, Slowed::Hardware), (ThrottleReasons::SW_POWER_CAP, Slowed::Power)];
    all.into_iter().find(|(kind, _)| reasons.intersects(*kind)).map(|(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_reason_counts() {
        let idle = ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING;
        assert_eq!(slowed(idle), None);
        assert_eq!(slowed(idle | ThrottleReasons::SW_POWER_CAP), Some(Slowed::Power));
        let hot = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(slowed(hot | ThrottleReasons::SW_POWER_CAP), Some(Slowed::Heat));
        assert_eq!(slowed(ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN), Some(Slowed::Hardware));
    }
}
