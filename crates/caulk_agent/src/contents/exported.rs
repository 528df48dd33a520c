//! Memory of which an object is but the handle: mappings (`mmap.mmap`), arrays and structures of ctypes, streams in
//! memory.
//!
//! Asked for by the buffer protocol, or a method, of the library's own types alone. Pages of a file are no memory that the program
//! holds: the kernel takes them back.

use std::os::raw::c_int;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::heap::{Address, Shape};
use crate::symbols::{self, BufferView};

/// Without format and shape: one block of bytes.
const SIMPLE: c_int = 0;

/// Paths in `/proc/self/maps` that are memory, beside none at all.
const MEMORY: [&str; 6] = ["[heap]", "[anon", "/dev/zero (deleted)", "/dev/shm/", "/memfd:", "/SYSV"];

/// The memory of the process, by address.
#[derive(Default)]
pub(super) struct Exported {
    /// `/proc/self/maps`, once it is needed.
    maps: Option<String>,
}

impl Exported {
    /// Where the memory behind an object begins, and its bytes; `None` where it has none (any more), or that of a file.
    /// The object is of one of the types named above, and alive.
    pub(super) fn of(&mut self, object: Address) -> Option<(Address, u64)> {
        let (get, release) = (symbols::get_buffer()?, symbols::release_buffer()?);
        let mut view = std::mem::MaybeUninit::<BufferView>::zeroed();
        // SAFETY: a live object and a place for its answer.
        if unsafe { get(object as *mut ffi::PyObject, view.as_mut_ptr(), SIMPLE) } != 0 {
            // A mapping that was closed.
            // SAFETY: the GIL is held.
            unsafe { ffi::PyErr_Clear() };
            return None;
        }
        // SAFETY: filled in by the call.
        let mut view = unsafe { view.assume_init() };
        let (start, length) = (view.start as Address, view.length.unsigned_abs() as u64);
        // SAFETY: the view from above, once.
        unsafe { release(&raw mut view) };
        self.is_memory(start).then_some((start, length))
    }

    fn is_memory(&mut self, address: Address) -> bool {
        let maps =
            self.maps.get_or_insert_with(|| std::fs::read_to_string("/proc/self/maps").unwrap_or_default());
        path_at(maps, address)
            .is_some_and(|path| path.is_empty() || MEMORY.iter().any(|memory| path.starts_with(memory)))
    }
}

/// Bytes that a stream in memory holds: those of `io.BytesIO` as it says itself, and for `io.StringIO`, which does not
/// say, one for each character up to where it is written. No subclass.
pub(super) fn of_stream(stream: &Bound<'_, PyAny>, shape: Shape) -> u64 {
    let method = if shape == Shape::Stream { "__sizeof__" } else { "tell" };
    stream.call_method0(method).and_then(|size| size.extract()).unwrap_or(0)
}

/// What is mapped at an address, by the lines of `/proc/self/maps`: empty for memory that has no name.
fn path_at(maps: &str, address: Address) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| Address::from_str_radix(text, 16).ok();
        // Permissions, offset, device and inode come before the path.
        let path = rest.splitn(5, ' ').nth(4).unwrap_or("").trim_start();
        (number(start)? <= address && address < number(end)?).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::path_at;

    #[test]
    fn what_is_mapped_is_told_by_address() {
        let maps = "55d0-55d8 rw-p 00000000 00:00 0                          [heap]\n\
                    7f00-7f10 rw-s 00000000 00:01 1038                       /dev/zero (deleted)\n\
                    7f10-7f20 r--s 00000000 fe:00 77                         /data/with space.bin\n\
                    7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert_eq!(path_at(maps, 0x55d1), Some("[heap]"));
        assert_eq!(path_at(maps, 0x7f0f), Some("/dev/zero (deleted)"));
        assert_eq!(path_at(maps, 0x7f10), Some("/data/with space.bin"));
        assert_eq!(path_at(maps, 0x7f2f), Some(""));
        assert_eq!(path_at(maps, 0x7f30), None);
    }
}
