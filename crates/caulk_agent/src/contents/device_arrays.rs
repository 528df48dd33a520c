//! Arrays on GPUs of other libraries than torch: their memory is on the device, and torch's allocator knows nothing of it.
//!
//! A table of types: only objects of exactly these are asked, by attributes and methods of the library's own. Memory that belongs to
//! somebody else, such as a tensor that an array shows, is not counted.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::heap::{Address, loaded, member, namespace_of, type_name};

/// Memory on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Its address, or an identity: arrays that share it have the same.
    pub(super) address: Address,
    pub(super) bytes: u64,
}

type Ask = fn(&Bound<'_, PyAny>) -> Option<Block>;

/// Where each type is, its name there, and how an array of it is asked.
const TYPES: [(&str, &str, Ask); 5] = [
    ("cupy", "ndarray", cupy),
    ("numba.cuda.cudadrv.devicearray", "DeviceNDArray", numba),
    ("jaxlib._jax", "ArrayImpl", jax),
    ("jaxlib._jax", "Array", jax),
    ("jaxlib.xla_extension", "ArrayImpl", jax),
];

/// The types that the program has loaded.
pub(super) struct DeviceArrays(Vec<(Address, Ask)>);

impl DeviceArrays {
    pub(super) fn find(py: Python<'_>) -> Self {
        let address = |module: &str, name: &str| {
            let kind = member(&loaded(py, module)?, name)?.cast_into::<PyType>().ok()?;
            Some(kind.as_ptr() as Address)
        };
        let known = TYPES.iter().filter_map(|(module, name, ask)| Some((address(module, name)?, *ask)));
        Self(known.collect())
    }

    /// The memory of an object of this type, if it is one of these and owns some.
    pub(super) fn block<'py>(
        &self,
        kind: Address,
        object: impl FnOnce() -> Bound<'py, PyAny>,
    ) -> Option<Block> {
        let (_, ask) = self.0.iter().find(|(known, _)| *known == kind)?;
        ask(&object()).filter(|block| block.bytes > 0)
    }
}

/// `array.data.mem`: a block of `CuPy`'s pool, of the driver, or of somebody else (`cupy/cuda/memory.pyx`).
fn cupy(array: &Bound<'_, PyAny>) -> Option<Block> {
    let memory = array.getattr("data").ok()?.getattr("mem").ok()?;
    let own = ["PooledMemory", "Memory", "MemoryAsync"];
    if !own.contains(&type_name(&memory.get_type()).as_str()) {
        return None;
    }
    let number = |name: &str| memory.getattr(name).ok()?.extract::<u64>().ok();
    Some(Block { address: number("ptr")? as Address, bytes: number("size")? })
}

/// `array.gpu_data`: memory that frees itself, where the array has allocated it (`numba/cuda/cudadrv/driver.py`).
fn numba(array: &Bound<'_, PyAny>) -> Option<Block> {
    let own = namespace_of(array)?;
    let data = own.get_item("gpu_data").ok()??;
    if type_name(&data.get_type()) == "MemoryPointer" {
        return None;
    }
    let bytes = own.get_item("alloc_size").ok()??.extract().ok()?;
    Some(Block { address: data.as_ptr() as Address, bytes })
}

/// An array of JAX on one device that is no processor.
fn jax(array: &Bound<'_, PyAny>) -> Option<Block> {
    let device = array.call_method0("devices").ok()?.try_iter().ok()?.next()?.ok()?;
    let platform: String = device.getattr("platform").ok()?.extract().ok()?;
    if platform == "cpu" {
        return None;
    }
    let number = |name: &str| array.call_method0(name).ok()?.extract::<u64>().ok();
    Some(Block {
        address: number("unsafe_buffer_pointer")? as Address,
        bytes: number("on_device_size_in_bytes")?,
    })
}
