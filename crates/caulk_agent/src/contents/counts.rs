//! Names by how often they occur.

use std::collections::HashMap;

/// The commonest, in order.
pub(super) fn by_count(counts: HashMap<String, u32>) -> Vec<(String, u32)> {
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(8);
    rows
}
