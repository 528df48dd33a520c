//! All rules, in order of names.

mod augmentation_per_fold;
mod cached_method;
mod figure_not_closed;
mod graph_kept_in_container;
mod plot_every_epoch;
mod rows_kept_until_end;
mod whole_video_load;
mod worker_copy_on_write;
mod worker_memory_grows;

use crate::rule::Rule;

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[
    &augmentation_per_fold::RULE,
    &cached_method::RULE,
    &figure_not_closed::RULE,
    &graph_kept_in_container::RULE,
    &plot_every_epoch::RULE,
    &rows_kept_until_end::RULE,
    &whole_video_load::RULE,
    &worker_copy_on_write::RULE,
    &worker_memory_grows::RULE,
];
