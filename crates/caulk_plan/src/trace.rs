//! What was counted while a model ran on tensors without contents.

use serde::Deserialize;

/// What was counted while a model ran on tensors without contents. In bytes unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Trace {
    /// The model's class.
    pub name: String,
    /// Number of its parameters.
    pub parameters: u64,
    /// Its parameters and buffers.
    pub model_bytes: u64,
    /// Gradients: parameters that are trained.
    pub gradient_bytes: u64,
    /// Each parameter and buffer, in the order in which they are made.
    pub tensors: Vec<u64>,
    /// Each parameter that is trained.
    pub trained: Vec<u64>,
    /// One sample.
    pub sample_bytes: u64,
    /// Does it normalise over the batch?
    pub batch_norm: bool,
    /// Does it convolve over clips?
    pub conv3d: bool,
    /// How often it was run, and how.
    pub runs: Vec<TraceRun>,
    /// What could not be counted as it would be on a GPU.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One forward and backward pass.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TraceRun {
    /// Samples.
    pub batch: u64,
    /// Under autocast to 16 bit?
    pub mixed: bool,
    /// With blocks computed again?
    pub checkpointing: bool,
    /// Kept for the backward pass.
    pub saved: u64,
    /// Allocations in order, in bytes, and frees: minus the number of the allocation, from 1. Gradients are not freed.
    pub events: Vec<i64>,
    /// The event with which the backward pass begins.
    pub forward: usize,
    /// Workspaces that cuDNN takes for the time of an operation: the event before which, and bytes.
    pub workspaces: Vec<(usize, u64)>,
    /// Does the model multiply matrices?
    pub products: bool,
}

impl TraceRun {
    /// The most that lives at once, beside the model and its gradients.
    pub(crate) fn peak(&self) -> u64 {
        let mut freed = vec![false; self.events.len()];
        for event in self.events.iter().filter(|event| **event < 0) {
            freed[event.unsigned_abs() as usize - 1] = true;
        }
        let (mut sizes, mut live, mut peak) = (Vec::new(), 0, 0);
        for event in &self.events {
            if *event < 0 {
                live -= sizes[event.unsigned_abs() as usize - 1];
            } else {
                // A gradient is added to the one that is there.
                let bytes = if freed[sizes.len()] { *event as u64 } else { 0 };
                peak = peak.max(live + *event as u64);
                live += bytes;
                sizes.push(bytes);
            }
        }
        peak
    }
}
