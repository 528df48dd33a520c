//! All rules, in order of names.

mod augmentation_per_fold;
mod cache_keyed_by_tensor;
mod cached_method;
mod callback_keeps_tensor;
mod cleanup_as_plaster;
mod context_attribute_tensor;
mod device_tensor_kept;
mod evaluation_with_grad;
mod exception_keeps_frames;
mod figure_not_closed;
mod file_handles_grow;
mod global_accumulation;
mod gradients_never_cleared;
mod graph_kept_in_container;
mod graph_retained;
mod hook_never_removed;
mod large_local_kept;
mod loader_per_epoch;
mod log_records_kept;
mod loss_kept_with_graph;
mod mutable_default_grows;
mod no_release_after_validation;
mod optimizer_recreated;
mod orphan_process;
mod pinned_memory_unneeded;
mod plot_every_epoch;
mod profiler_left_on;
mod reference_cycle;
mod rows_kept_until_end;
mod shared_memory_left;
mod state_not_detached;
mod step_outputs_not_cleared;
mod thread_never_ends;
mod unbounded_cache;
mod unbounded_history;
mod unbounded_queue;
mod unseeded_augmentation;
mod view_pins_storage;
mod whole_video_load;
mod worker_copy_on_write;
mod worker_memory_grows;
mod workers_oversubscribed;

use crate::rule::Rule;

/// Every rule, in order of names.
pub static RULES: &[&Rule] = &[
    &augmentation_per_fold::RULE,
    &cache_keyed_by_tensor::RULE,
    &cached_method::RULE,
    &callback_keeps_tensor::RULE,
    &cleanup_as_plaster::RULE,
    &context_attribute_tensor::RULE,
    &device_tensor_kept::RULE,
    &evaluation_with_grad::RULE,
    &exception_keeps_frames::RULE,
    &figure_not_closed::RULE,
    &file_handles_grow::RULE,
    &global_accumulation::RULE,
    &gradients_never_cleared::RULE,
    &graph_kept_in_container::RULE,
    &graph_retained::RULE,
    &hook_never_removed::RULE,
    &large_local_kept::RULE,
    &loader_per_epoch::RULE,
    &log_records_kept::RULE,
    &loss_kept_with_graph::RULE,
    &mutable_default_grows::RULE,
    &no_release_after_validation::RULE,
    &optimizer_recreated::RULE,
    &orphan_process::RULE,
    &pinned_memory_unneeded::RULE,
    &plot_every_epoch::RULE,
    &profiler_left_on::RULE,
    &reference_cycle::RULE,
    &rows_kept_until_end::RULE,
    &shared_memory_left::RULE,
    &state_not_detached::RULE,
    &step_outputs_not_cleared::RULE,
    &thread_never_ends::RULE,
    &unbounded_cache::RULE,
    &unbounded_history::RULE,
    &unbounded_queue::RULE,
    &unseeded_augmentation::RULE,
    &view_pins_storage::RULE,
    &whole_video_load::RULE,
    &worker_copy_on_write::RULE,
    &worker_memory_grows::RULE,
    &workers_oversubscribed::RULE,
];
