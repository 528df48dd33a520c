//! All rules, in order of names.

mod cached_method;
mod graph_kept_in_container;

use crate::rule::Rule;

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[&cached_method::RULE, &graph_kept_in_container::RULE];
