//! The ledger of each GPU at a boundary: torch's allocator in its parts, beside the driver's figures.

use std::collections::HashMap;
use std::time::Duration;

use caulk_wire::GpuLedger;
use pyo3::prelude::*;

use crate::budget::{Budget, Price};
use crate::cuda::{Device, ask};
use crate::cuda_blocks::{self, Blocks};
use crate::heap::loaded;

/// What is reserved must have changed by so much, in bytes and as a part of it, for its blocks to be read again.
const CHANGED: u64 = 32 << 20;
const CHANGED_PART: u64 = 16;

/// What is known of the devices that the process uses.
#[derive(Debug)]
pub(crate) struct Ledgers {
    devices: HashMap<u32, Known>,
    price: Price,
}

#[derive(Debug, Default)]
struct Known {
    uuid: String,
    /// The blocks, and what was reserved when they were read.
    blocks: Option<(Blocks, u64)>,
}

impl Default for Ledgers {
    fn default() -> Self {
        Self { devices: HashMap::new(), price: Price::new(Duration::from_micros(500)) }
    }
}

impl Ledgers {
    /// The ledger of one device at a boundary. `detailed`: its blocks may be read.
    ///
    /// # Errors
    /// What the program itself must see, such as Ctrl-C.
    pub(crate) fn at(
        &mut self,
        py: Python<'_>,
        boundary: u32,
        device: &Device,
        detailed: bool,
        budget: &Budget,
    ) -> PyResult<GpuLedger> {
        let Device { number, figures, driver, allowed } = *device;
        if let std::collections::hash_map::Entry::Vacant(e) = self.devices.entry(number) {
            e.insert(Known { uuid: uuid(py, number)?, blocks: None });
        }
        let known = self.devices.entry(number).or_default();
        if detailed && known.has_changed(figures.reserved) {
            let read =
                self.price.pay(budget, || cuda_blocks::blocks(py, number, &figures)).transpose()?.flatten();
            known.blocks = read.map(|blocks| (blocks, figures.reserved)).or(known.blocks.take());
        }
        let blocks = known.blocks.as_ref().map(|(blocks, _)| blocks.clone()).unwrap_or_default();
        let (free_bytes, total_bytes) = driver.unwrap_or_default();
        Ok(GpuLedger {
            boundary,
            device: number,
            uuid: known.uuid.clone(),
            allocated_bytes: figures.allocated,
            reserved_bytes: figures.reserved,
            gaps_bytes: figures.inactive,
            pools_bytes: blocks.pools,
            pools_used_bytes: blocks.pools_used,
            pools_gaps_bytes: blocks.pools_gaps,
            largest_free_bytes: blocks.largest_free,
            largest_used_bytes: blocks.largest_used,
            free_bytes,
            total_bytes,
            allowed_bytes: allowed.unwrap_or(0),
            settings: blocks.settings,
        })
    }
}

impl Known {
    fn has_changed(&self, reserved: u64) -> bool {
        self.blocks
            .as_ref()
            .is_none_or(|(_, then)| reserved.abs_diff(*then) >= CHANGED.max(then / CHANGED_PART))
    }
}

/// Groups of 4, 2, 2, 2 and 6 bytes: `0f0f0f0f-0f0f-...`.
fn written(bytes: &[u8]) -> String {
    const DASHED: [usize; 4] = [4, 6, 8, 10];
    let groups = bytes.iter().enumerate().map(|(at, byte)| {
        let dash = if DASHED.contains(&at) { "-" } else { "" };
        format!("{dash}{byte:02x}")
    });
    groups.collect::<Vec<_>>().concat()
}

/// The device's UUID, as the driver writes it after `GPU-`; empty where it has none.
fn uuid(py: Python<'_>, device: u32) -> PyResult<String> {
    let Some(cuda) = loaded(py, "torch.cuda") else { return Ok(String::new()) };
    let properties = ask(&cuda, "get_device_properties", Some(device))?;
    let bytes: Option<Vec<u8>> = properties
        .and_then(|properties| properties.getattr("uuid").ok()?.getattr("bytes").ok()?.extract().ok());
    Ok(bytes.map_or_else(String::new, |bytes| written(&bytes)))
}
