//! Adds up what training keeps: each tensor once, at the width at which it is kept.

use super::flow::Flow;
use super::layer::Layer;
use crate::Estimate;

/// Bytes of an element at 32 bit.
pub(super) const FULL: f64 = 4.0;
/// Bytes of an element at 16 bit.
const HALF: f64 = 2.0;

/// How the model is run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mode {
    /// Under autocast to 16 bit?
    pub(crate) mixed: bool,
    /// Are blocks computed again in the backward pass?
    pub(crate) checkpointing: bool,
}

/// What a model needs; in bytes, for one sample where nothing else is said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Numbers that are learned.
    pub(crate) parameters: f64,
    /// Statistics of batch normalisation, for any batch.
    pub(crate) buffers: f64,
    /// 16-bit copies of weights that autocast keeps, for any batch.
    pub(crate) copies: f64,
    /// Kept for the backward pass.
    pub(crate) saved: Estimate,
    /// The most that lives during the backward pass: what the layers up to one have kept, and the gradients around it.
    pub(crate) reached: Estimate,
    /// Does the model normalise over the batch?
    pub(crate) batch_norm: bool,
}

/// A way through the layers, and what has been added up on it.
pub(super) struct Walk {
    pub(super) mode: Mode,
    /// Bytes of gradients that wait at the end of the shortcuts around.
    pub(super) held: f64,
    pub(super) cost: Cost,
    pub(super) layers: u64,
}

impl Walk {
    /// The backward pass has come to this layer: what later ones have kept is free again, and gradients of what it gave and
    /// of what it read live at once.
    pub(super) fn reach(&mut self, layer: &Layer, read: &Flow, gave: &Flow) {
        let both = gave.bytes() + if read.learned { read.bytes() } else { 0.0 };
        // oneDNN and cuDNN lay out copies for convolutions over clips: 21 % of a step's peak on r3d_18.
        let copies = if matches!(layer, Layer::Conv(_)) && gave.shape.len() == 4 { both } else { 0.0 };
        let gradients = Estimate::between(gave.bytes(), both + 0.5 * copies, 1.5 * (both + copies));
        let held = Estimate::exact(self.held);
        self.cost.reached = self.cost.reached.max(self.cost.saved + gradients + held);
    }

    pub(super) fn add(&mut self, bytes: f64) {
        self.cost.saved = self.cost.saved + Estimate::exact(bytes);
    }

    /// The backward pass needs this tensor as it is.
    pub(super) fn keep(&mut self, flow: &mut Flow) {
        if !flow.saved {
            self.add(flow.bytes());
            flow.saved = true;
        }
    }

    /// ... at another width: a copy, where it has not that width already.
    pub(super) fn keep_as(&mut self, flow: &mut Flow, item: f64) {
        if (flow.item - item).abs() < f64::EPSILON {
            self.keep(flow);
        } else {
            self.add(flow.elements() * item);
        }
    }

    /// Layers without weights keep nothing where nothing before them is learned.
    pub(super) fn keep_if_learned(&mut self, flow: &mut Flow) {
        if flow.learned {
            self.keep(flow);
        }
    }

    /// Bytes of an element of what a matrix product or a convolution reads and gives.
    pub(super) fn item(&self) -> f64 {
        if self.mode.mixed { HALF } else { FULL }
    }

    /// A matrix product or convolution: keeps its input.
    pub(super) fn product(&mut self, flow: &mut Flow, shape: Vec<u64>, weights: f64, bias: f64) -> Flow {
        let item = self.item();
        self.keep_as(flow, item);
        self.cost.parameters += weights + bias;
        if self.mode.mixed {
            self.cost.copies += weights * HALF;
        }
        Flow { item, learned: true, ..flow.to(shape) }
    }
}
