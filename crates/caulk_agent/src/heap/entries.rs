//! Entries of a dict and items of a list by address: nothing is made or called, and millions need not be gone through one by
//! one.

use pyo3::ffi;

use super::Address;

/// Entries of a dict in their order, that nothing changes meanwhile.
pub(crate) struct Entries {
    dict: Address,
    position: isize,
}

impl Entries {
    pub(crate) fn of(dict: Address) -> Self {
        Self { dict, position: 0 }
    }

    /// Goes on from the entry of this number, or an earlier one where entries have been deleted.
    pub(crate) fn skip_to(&mut self, number: usize) {
        self.position = number as isize;
    }
}

impl Iterator for Entries {
    /// Key and value.
    type Item = (Address, Address);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        let dict = self.dict as *mut ffi::PyObject;
        // SAFETY: a dict or a subclass; positions are indices that it checks (CPython, `_PyDict_Next`).
        let found =
            unsafe { ffi::PyDict_Next(dict, &raw mut self.position, &raw mut key, &raw mut value) } != 0;
        found.then_some((key as Address, value as Address))
    }
}

/// An item of a list that is alive, or of an object of a subclass. `None` beyond its end, and where C code that fills the list
/// (`PyList_New`) has not come yet: Python code may run meanwhile.
pub(crate) fn item(list: Address, index: usize) -> Option<Address> {
    let list = list as *mut ffi::PyObject;
    let index = isize::try_from(index).ok()?;
    // SAFETY: a list; its size is a field of it.
    if index >= unsafe { ffi::PyList_Size(list) } {
        return None;
    }
    // SAFETY: a list, an index within it; returns a borrowed reference, or null for an empty slot.
    let item = unsafe { ffi::PyList_GetItem(list, index) };
    (!item.is_null()).then_some(item as Address)
}
