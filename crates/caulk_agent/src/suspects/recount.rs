//! What is followed, counted without a census: by the way that led to it.

use std::time::Duration;

use super::Suspects;
use crate::channel::Channel;
use crate::heap::{Heap, type_address};
use crate::holders::Roots;
use crate::stopwatch::Stopwatch;

/// CPU time that it may take at one boundary.
const LONGEST: Duration = Duration::from_millis(5);

impl Suspects {
    /// Counts what grows at a boundary that has no census, and tells how much there is. What is not found is left to the next
    /// census.
    pub(crate) fn count_again(&mut self, heap: &mut Heap<'_>, boundary: u32, channel: &mut Channel) {
        let followed =
            |item: &super::Suspect| item.explained && item.address.is_some() && item.path.is_some();
        if !self.items.iter().any(followed) {
            return;
        }
        let started = Stopwatch::start();
        let roots = Roots::now(heap.py);
        let mut order: Vec<usize> = (0..self.items.len()).filter(|at| followed(&self.items[*at])).collect();
        order.sort_by_key(|at| std::cmp::Reverse((self.items[*at].by_user, self.items[*at].weight())));
        for at in order {
            if started.work() > LONGEST {
                return;
            }
            let item = &mut self.items[at];
            let (Some((address, object_type)), Some(path)) = (item.address, &item.path) else { continue };
            if !roots.lead_to_end_of(heap, path) || type_address(address) != object_type {
                continue;
            }
            let Some(length) = heap.length(address) else { continue };
            item.shallow = heap.shallow_bytes(address) as u64;
            item.counted = length as u64;
            item.pending.push((boundary, length as u64));
            item.send_lengths(channel);
        }
    }
}
