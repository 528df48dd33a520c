//! What `import caulk` asks of the heap outside `caulk run`: figures, a census, holders, what a graph pins, what grew.

use pyo3::prelude::*;

mod compare;
mod holding;
mod refused;
mod verdict;

use self::refused::refused;
use crate::census::{self, CollectorPaused};
use crate::graphs;
use crate::heap::Heap;
use crate::in_use::Meter;
use crate::torch::Torch;

/// Resident, virtual and swapped bytes of this process, and what the file of its cgroup says, where there is one.
#[pyfunction]
#[pyo3(signature = (cgroup=None))]
fn memory_figures(cgroup: Option<&str>) -> PyResult<(u64, u64, u64, Option<u64>)> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    };
    let in_cgroup = cgroup.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    Ok((field("VmRSS:"), field("VmSize:"), field("VmSwap:"), in_cgroup))
}

/// Bytes that malloc has handed out, and blocks of Python's own allocator.
#[pyfunction]
fn bytes_in_use(py: Python<'_>) -> (u64, u64) {
    let malloc = Meter::new().used();
    (malloc, crate::in_use::small_blocks(py))
}

/// Name, count and shallow bytes of one type.
type TypeRow = (String, u64, u64);

/// Objects in all, and all types, the most bytes first.
#[pyfunction]
fn take_census(py: Python<'_>) -> PyResult<(u64, Vec<TypeRow>)> {
    let _paused = CollectorPaused::new(py);
    let mut heap = Heap::new(py);
    let census = census::take_for_user(&mut heap).map_err(refused)?;
    heap.keep(census.types.keys().copied());
    let mut types: Vec<TypeRow> = census
        .types
        .iter()
        .map(|(address, tally)| (heap.name_of_type(*address), tally.count, tally.bytes))
        .collect();
    types.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    Ok((census.objects, types))
}

/// Of a tensor: bytes of its storage, of the part it shows, nodes of the graph behind it, bytes that these saved, their
/// commonest types, and whether the walk was cut short. `None` where it is no plain tensor.
type Pinned = (u64, u64, u64, u64, Vec<(String, u32)>, bool);

/// What a tensor keeps alive.
#[pyfunction]
fn pinned_by(py: Python<'_>, tensor: &Bound<'_, PyAny>) -> Option<Pinned> {
    let torch = Torch::new(py)?;
    if !torch.is_plain(tensor) {
        return None;
    }
    let storage = Torch::storage(tensor).map_or(0, |storage| storage.bytes);
    let shown = Torch::view_bytes(tensor);
    let graph = graphs::contents_of(tensor, None).unwrap_or_default();
    Some((storage, shown, graph.graph_nodes, graph.saved_bytes, graph.node_types, graph.truncated))
}

/// Asks glibc to give free pages back to the system; false where it had none, or where another allocator is in use.
#[pyfunction]
fn trim_malloc() -> bool {
    type Trim = unsafe extern "C" fn(usize) -> std::os::raw::c_int;
    let Some(function) = crate::symbols::find(c"malloc_trim") else { return false };
    // SAFETY: the type that malloc.h declares.
    let trim = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Trim>(function) };
    // SAFETY: takes the bytes to leave at the top of the heap; locks each arena in turn.
    unsafe { trim(0) != 0 }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(memory_figures, module)?)?;
    module.add_function(wrap_pyfunction!(bytes_in_use, module)?)?;
    module.add_function(wrap_pyfunction!(take_census, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_by, module)?)?;
    module.add_function(wrap_pyfunction!(trim_malloc, module)?)?;
    module.add_function(wrap_pyfunction!(holding::holders_of, module)?)?;
    module.add_function(wrap_pyfunction!(verdict::judge_bytes, module)?)?;
    module.add_class::<compare::Lengths>()
}
