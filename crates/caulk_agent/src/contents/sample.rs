//! A few elements of a container, by which the others are judged; taken without calling anything.

use crate::heap::{Address, AddressSet, Entries, Heap, MOST_REFERENTS, Shape, item};

/// Elements looked at.
const SAMPLE: usize = 8;
/// Elements from which on the oldest is looked at apart from the others.
const FEWEST: usize = 3;
/// Of these so many in a row: what neighbours share (the state that one transition of a replay buffer ends with and the
/// next begins with) dies with none of them alone.
const RUN: usize = 4;

/// Elements of containers: keys beside values for dicts.
///
/// Taken in runs from the younger half, the very youngest left out: what was stored last is often in use elsewhere
/// still (a batch in flight), and would not die with the container.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) elements: Vec<Address>,
    pub(super) keys: Vec<Address>,
    pub(super) first_key: Option<Address>,
    /// The keys stored last.
    pub(super) last_keys: Vec<Address>,
}

/// Positions to look at in a container of this length, of which so many elements are `old`: others, if there are two.
fn positions(length: usize, old: usize) -> Vec<usize> {
    let first = if old + 1 < length { old } else { 0 };
    let end = length.saturating_sub(((length - first) / 8).max(1)).max(length.min(1));
    let start = (length / 2).max(first).min(end.saturating_sub(SAMPLE).max(first));
    let span = end - start;
    if span <= SAMPLE {
        return (start..end).collect();
    }
    let runs = (0..SAMPLE / RUN).map(|run| start + run * RUN * span / SAMPLE);
    runs.flat_map(|first| first..first + RUN).collect()
}

impl Sample {
    pub(super) fn take(heap: &mut Heap<'_>, container: Address, old: usize) -> Self {
        let mut sample = Self::default();
        let length = heap.length(container).unwrap_or(0);
        match heap.type_of(container).shape {
            Shape::Dict => sample.take_dict(container, length, old),
            Shape::List => {
                let items = positions(length, old).into_iter().filter_map(|index| item(container, index));
                sample.elements.extend(items);
            }
            Shape::Buffer | Shape::Items => {}
            _ => {
                // Traversed in their own order: a deque's from the oldest, a set's in none.
                let mut wanted = positions(length.min(MOST_REFERENTS), 0).into_iter().peekable();
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

    /// The oldest element of a container that keeps its order and has some more.
    pub(super) fn oldest(heap: &mut Heap<'_>, container: Address) -> Option<Self> {
        let length = heap.length(container).filter(|length| *length >= FEWEST)?;
        let (mut elements, mut keys) = (Vec::new(), Vec::new());
        match heap.type_of(container).shape {
            Shape::List => elements.push(item(container, 0)?),
            Shape::Dict => {
                let (key, value) = Entries::of(container).next()?;
                keys.push(key);
                elements.push(value);
            }
            Shape::Deque if length <= MOST_REFERENTS => {
                heap.referents(container, &mut |item| {
                    if elements.is_empty() {
                        elements.push(item);
                    }
                });
            }
            _ => return None,
        }
        Some(Self { elements, keys, ..Self::default() })
    }

    /// Takes out elements. Entries of a dict with another key stay where their values are numbers and the like, which
    /// others share by chance.
    pub(super) fn leave_out(&mut self, heap: &mut Heap<'_>, these: &AddressSet) {
        let is_shared = |heap: &mut Heap<'_>, at: usize, element: &Address| {
            let by_chance = self.keys.get(at).is_some_and(|key| !these.contains(key))
                && heap.type_of(*element).shape == Shape::Plain
                && !heap.type_of(*element).collected;
            these.contains(element) && !by_chance
        };
        let elements = self.elements.iter().enumerate();
        let stays: Vec<bool> = elements.map(|(at, element)| !is_shared(heap, at, element)).collect();
        let mut at = stays.iter();
        self.elements.retain(|_| at.next().copied().unwrap_or(true));
        let mut at = stays.iter();
        self.keys.retain(|_| at.next().copied().unwrap_or(true));
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

    fn take_dict(&mut self, container: Address, length: usize, old: usize) {
        let mut wanted = positions(length, old).into_iter().peekable();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_element_is_looked_at_twice_nor_beyond_the_end() {
        for length in 0..2000 {
            let positions = positions(length, 0);
            let before_the_youngest = length.saturating_sub(1);
            assert_eq!(positions.len(), before_the_youngest.clamp(length.min(1), SAMPLE), "{length}");
            assert!(positions.is_sorted_by(|one, next| one < next), "{length}: {positions:?}");
            assert!(positions.last().is_none_or(|last| *last < length), "{length}: {positions:?}");
        }
    }

    #[test]
    fn the_youngest_is_left_out_unless_it_is_alone() {
        assert_eq!(positions(1, 0), [0]);
        assert_eq!(positions(2, 0), [0]);
        assert_eq!(positions(9, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn neighbours_are_looked_at_together() {
        assert_eq!(positions(1000, 0), [500, 501, 502, 503, 687, 688, 689, 690]);
        assert_eq!(positions(1000, 800), [800, 801, 802, 803, 887, 888, 889, 890]);
    }

    #[test]
    fn what_was_there_before_is_not_looked_at_beside_two_that_came_later() {
        assert_eq!(positions(11, 8), [8, 9]);
        assert_eq!(positions(1000, 990), [990, 991, 992, 993, 994, 995, 996, 997]);
        assert_eq!(positions(9, 8), positions(9, 0), "the youngest may be in use");
        assert_eq!(positions(9, 9), positions(9, 0));
    }
}
