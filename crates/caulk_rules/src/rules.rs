//! All rules, in order of names.

mod augmentation_per_fold;
mod cache_keyed_by_tensor;
mod cached_method;
mod callback_keeps_tensor;
mod device_tensor_kept;
mod evaluation_with_grad;
mod exception_keeps_frames;
mod figure_not_closed;
mod global_accumulation;
mod gradients_never_cleared;
mod graph_kept_in_container;
mod graph_retained;
mod hook_never_removed;
mod log_records_kept;
mod loss_kept_with_graph;
mod mutable_default_grows;
mod optimizer_recreated;
mod plot_every_epoch;
mod reference_cycle;
mod rows_kept_until_end;
mod state_not_detached;
mod step_outputs_not_cleared;
mod unbounded_cache;
mod unbounded_history;
mod unbounded_queue;
mod view_pins_storage;
mod whole_video_load;
mod worker_copy_on_write;
mod worker_memory_grows;

use crate::rule::Rule;

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[
    &augmentation_per_fold::RULE,
    &cache_keyed_by_tensor::RULE,
    &cached_method::RULE,
    &callback_keeps_tensor::RULE,
    &device_tensor_kept::RULE,
    &evaluation_with_grad::RULE,
    &exception_keeps_frames::RULE,
    &figure_not_closed::RULE,
    &global_accumulation::RULE,
    &gradients_never_cleared::RULE,
    &graph_kept_in_container::RULE,
    &graph_retained::RULE,
    &hook_never_removed::RULE,
    &log_records_kept::RULE,
    &loss_kept_with_graph::RULE,
    &mutable_default_grows::RULE,
    &optimizer_recreated::RULE,
    &plot_every_epoch::RULE,
    &reference_cycle::RULE,
    &rows_kept_until_end::RULE,
    &state_not_detached::RULE,
    &step_outputs_not_cleared::RULE,
    &unbounded_cache::RULE,
    &unbounded_history::RULE,
    &unbounded_queue::RULE,
    &view_pins_storage::RULE,
    &whole_video_load::RULE,
    &worker_copy_on_write::RULE,
    &worker_memory_grows::RULE,
];
