//! The tensor between two layers, and what becomes of its shape.

use super::ModelError;
use super::layer::{Sizes, Window};

/// The tensor between two layers.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) shape: Vec<u64>,
    /// So many of it: frames that are looked at one by one.
    pub(super) copies: f64,
    /// Bytes of an element.
    pub(super) item: f64,
    pub(super) saved: bool,
    /// Does it depend on anything that is learned?
    pub(super) learned: bool,
}

impl Flow {
    pub(super) fn elements(&self) -> f64 {
        self.shape.iter().map(|size| *size as f64).product::<f64>() * self.copies
    }

    pub(super) fn bytes(&self) -> f64 {
        self.elements() * self.item
    }

    /// Another tensor of this shape.
    pub(super) fn to(&self, shape: Vec<u64>) -> Self {
        Self { shape, saved: false, ..self.clone() }
    }

    pub(super) fn last(&self) -> u64 {
        self.shape.last().copied().unwrap_or(1)
    }
}

pub(super) fn wrong(layer: &'static str, wanted: &'static str, flow: &Flow) -> ModelError {
    ModelError::Shape { layer, wanted, shape: flow.shape.clone() }
}

/// Tokens and features of each.
pub(super) fn tokens(flow: &Flow, layer: &'static str) -> Result<(u64, u64), ModelError> {
    let [count, features] = *flow.shape.as_slice() else {
        return Err(wrong(layer, "[tokens, features]", flow));
    };
    Ok((count, features))
}

pub(super) fn clip(flow: &Flow, layer: &'static str) -> Result<(u64, u64, u64, u64), ModelError> {
    let [channels, frames, height, width] = *flow.shape.as_slice() else {
        return Err(wrong(layer, "[channels, frames, height, width]", flow));
    };
    Ok((channels, frames, height, width))
}

/// What is left when positions are averaged: channels come first in images, features last in sequences.
pub(super) fn pooled_size(flow: &Flow) -> Result<u64, ModelError> {
    match flow.shape.as_slice() {
        [_, features] => Ok(*features),
        [channels, _, _, ..] => Ok(*channels),
        _ => Err(wrong("global-pool", "positions to average", flow)),
    }
}

pub(super) fn pooled(window: &Window, flow: &Flow, layer: &'static str) -> Result<Flow, ModelError> {
    let stride = window.stride.clone().unwrap_or(window.kernel.clone());
    let channels = flow.shape.first().copied().unwrap_or(0);
    Ok(flow.to(windows(flow, channels, &window.kernel, &stride, &window.padding, layer)?))
}

/// One size for each dimension of positions.
pub(super) fn dimensions(sizes: &Sizes, flow: &Flow, layer: &'static str) -> Result<Vec<u64>, ModelError> {
    let rank = flow.shape.len().saturating_sub(1);
    match sizes {
        _ if rank == 0 => Err(wrong(layer, "channels and positions", flow)),
        Sizes::All(size) => Ok(vec![*size; rank]),
        Sizes::Each(sizes) if sizes.len() == rank => Ok(sizes.clone()),
        Sizes::Each(sizes) => Err(ModelError::Dimensions { layer, given: sizes.len(), rank }),
    }
}

/// Shape of what windows over the positions give.
pub(super) fn windows(
    flow: &Flow,
    channels: u64,
    kernel: &Sizes,
    stride: &Sizes,
    padding: &Sizes,
    layer: &'static str,
) -> Result<Vec<u64>, ModelError> {
    let sizes = |sizes| dimensions(sizes, flow, layer);
    let (kernel, stride, padding) = (sizes(kernel)?, sizes(stride)?, sizes(padding)?);
    let mut shape = vec![channels];
    for (at, size) in flow.shape.iter().skip(1).enumerate() {
        let padded = size.saturating_add(padding[at].saturating_mul(2));
        if kernel[at] == 0 || stride[at] == 0 || kernel[at] > padded {
            return Err(ModelError::Window { layer, kernel: kernel[at], stride: stride[at], size: padded });
        }
        shape.push((padded - kernel[at]) / stride[at] + 1);
    }
    Ok(shape)
}
