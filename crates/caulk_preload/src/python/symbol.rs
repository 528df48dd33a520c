//! Symbols by name.

use std::ffi::{CStr, c_void};

/// A symbol of the program or of a library that it has loaded.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
