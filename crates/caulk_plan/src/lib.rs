//! How much memory does a training need, and with which settings does it fit?
//!
//! Arithmetic: knows no files, processes or devices. A model comes as layers ([`Model`]) or as what was counted while it ran
//! ([`Trace`]); [`memory`] says what it needs by part, each with an interval, and [`plan`] looks for settings that fit. What
//! is predicted is not measured: each [`Part`] says where its figure comes from.

mod changes;
mod estimate;
mod gpus;
mod machine;
mod measured;
mod memory;
mod model;
mod near;
mod presets;
mod replay;
mod search;
mod settings;
mod source;
mod trace;

pub use changes::{Change, advice, changes};
pub use estimate::Estimate;
pub use gpus::{Gpu, UnknownGpu, gpu, gpus};
pub use machine::{Card, Machine};
pub use measured::{Measured, MeasuredPlan, plan_measured};
pub use memory::{Memory, Part, memory};
pub use model::{Input, Model, ModelError, Training, Video};
pub use presets::{UnknownPreset, preset, preset_text, presets};
pub use search::{Plan, plan};
pub use settings::{Decoding, Optimizer, Precision, Settings};
pub use source::Source;
pub use trace::{Trace, TraceRun};
