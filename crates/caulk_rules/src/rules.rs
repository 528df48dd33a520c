//! All rules, in order of names.

mod cached_method;

use crate::rule::Rule;

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[&cached_method::RULE];
