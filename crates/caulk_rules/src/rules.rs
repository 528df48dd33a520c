//! All rules, in order of names.

mod augmentation_per_fold;
mod cached_method;
mod device_tensor_kept;
mod evaluation_with_grad;
mod figure_not_closed;
mod gradients_never_cleared;
mod graph_kept_in_container;
mod graph_retained;
mod loss_kept_with_graph;
mod plot_every_epoch;
mod rows_kept_until_end;
mod state_not_detached;
mod view_pins_storage;
mod whole_video_load;
mod worker_copy_on_write;
mod worker_memory_grows;

use crate::rule::Rule;

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[
    &augmentation_per_fold::RULE,
    &cached_method::RULE,
    &device_tensor_kept::RULE,
    &evaluation_with_grad::RULE,
    &figure_not_closed::RULE,
    &gradients_never_cleared::RULE,
    &graph_kept_in_container::RULE,
    &graph_retained::RULE,
    &loss_kept_with_graph::RULE,
    &plot_every_epoch::RULE,
    &rows_kept_until_end::RULE,
    &state_not_detached::RULE,
    &view_pins_storage::RULE,
    &whole_video_load::RULE,
    &worker_copy_on_write::RULE,
    &worker_memory_grows::RULE,
];
