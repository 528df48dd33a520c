//! A few elements of a container, by which the others are judged; taken without calling anything.

use pyo3::ffi;

use crate::heap::{Address, AddressSet, Entries, Heap, MOST_REFERENTS, Shape};

/// Elements looked at.
const SAMPLE: usize = 8;

/// Elements of containers: keys beside values for dicts.
///
/// Taken evenly from the younger half, the very youngest left out: what was stored last is often in use elsewhere still
/// (a batch in flight), and would not die with the container.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) elements: Vec<Address>,
    pub(super) keys: Vec<Address>,
    pub(super) first_key: Option<Address>,
    /// The keys stored last.
    pub(super) last_keys: Vec<Address>,
}

/// Positions to look at in a container of this length.
fn positions(length: usize) -> Vec<usize> {
    if length <= SAMPLE {
        return (0..length).collect();
    }
    let (start, end) = (length / 2, length - length / 8 - 1);
    let span = (end - start).max(SAMPLE);
    (0..SAMPLE).map(|at| (start + at * span / SAMPLE).min(length - 1)).collect()
}

impl Sample {
    pub(super) fn take(heap: &mut Heap<'_>, container: Address) -> Self {
        let mut sample = Self::default();
        let length = heap.length(container).unwrap_or(0);
        match heap.type_of(container).shape {
            Shape::Dict => sample.take_dict(container, length),
            Shape::List => {
                for index in positions(length) {
                    // SAFETY: a list or a subclass, an index within it; returns a borrowed reference.
                    let item =
                        unsafe { ffi::PyList_GetItem(container as *mut ffi::PyObject, index as isize) };
                    sample.elements.push(item as Address);
                }
            }
            Shape::Buffer => {}
            _ => {
                // Traversed in their own order: a deque's from the oldest, a set's in none.
                let mut wanted = positions(length.min(MOST_REFERENTS)).into_iter().peekable();
                let mut count = 0;
                heap.referents(container, &mut |item| {
                    if wanted.next_if_eq(&count).is_some() {
                        sample.elements.push(item);
                    }
                    count += 1;
                });
            }
        }
        sample
    }

    /// Is an element that the collector knows not among what dies with the sample?
    pub(super) fn has_open(&self, heap: &mut Heap<'_>, owned: &[Address]) -> bool {
        let owned: AddressSet = owned.iter().copied().collect();
        self.elements.iter().any(|element| heap.type_of(*element).collected && !owned.contains(element))
    }

    pub(super) fn add(&mut self, other: Self) {
        self.elements.extend(other.elements);
        self.keys.extend(other.keys);
        self.first_key = self.first_key.or(other.first_key);
        self.last_keys = other.last_keys;
    }

    fn take_dict(&mut self, container: Address, length: usize) {
        let mut wanted = positions(length).into_iter().peekable();
        let last = length.saturating_sub(SAMPLE);
        let mut count = 0;
        let mut entries = Entries::of(container);
        while let Some((key, value)) = entries.next() {
            self.first_key.get_or_insert(key);
            if wanted.next_if_eq(&count).is_some() {
                self.keys.push(key);
                self.elements.push(value);
            }
            if count >= last {
                self.last_keys.push(key);
            }
            count += 1;
            // Of millions of entries only those that are looked at are gone to.
            let next = wanted.peek().copied().unwrap_or(last).min(last);
            if length > MOST_REFERENTS && next > count {
                entries.skip_to(next);
                count = next;
            }
        }
    }

    /// Everything in the sample.
    pub(super) fn addresses(&self) -> impl Iterator<Item = Address> {
        let keys = self.keys.iter().chain(&self.last_keys).chain(&self.first_key);
        self.elements.iter().chain(keys).copied()
    }
}
