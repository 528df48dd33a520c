//! References as the interpreter counts them: what trial deletion takes from one another.

use pyo3::ffi;

use super::{Address, AddressSet, Heap, Shape, read_word};
use crate::symbols;

impl Heap<'_> {
    /// Reference count, without the reference that keeps the object alive here; immortal objects have a very large one.
    pub(crate) fn references(&self, object: Address) -> usize {
        // The count is the first word, of which 3.14 uses the lower half.
        let count = read_word(object) & 0xffff_ffff;
        count - usize::from(self.kept.contains_key(&object))
    }

    /// As [`Self::referents`], each no more often than `object` counts among its references.
    ///
    /// What a suspended function of 3.14 is about to use lies on its stack beside the variable that it comes from, and is
    /// not counted there (`LOAD_FAST_BORROW`). Two variables for one object are taken for such a pair, so that at worst
    /// a reference is missed.
    pub(crate) fn counted_referents(&mut self, object: Address, visit: &mut dyn FnMut(Address)) {
        if self.type_of(object).shape != Shape::Generator || symbols::minor() < Some(14) {
            return self.referents(object, visit);
        }
        let mut once = AddressSet::default();
        self.referents(object, &mut |referent| {
            if once.insert(referent) {
                visit(referent);
            }
        });
    }

    /// Address of a function's globals; `None` for other objects.
    pub(crate) fn globals_of(&mut self, object: Address) -> Option<Address> {
        let globals =
            symbols::function_globals().filter(|_| self.type_of(object).shape == Shape::Function)?;
        // SAFETY: a function; a borrowed reference.
        Some(unsafe { globals(object as *mut ffi::PyObject) } as Address)
    }
}
