//! Groups of layers that have a name of their own, in terms of the others.

use super::layer::{
    Attention, Block, Bottleneck, Conv, Encoder, Layer, Linear, Mobile, Residual, Sizes, Squeeze,
};

/// Blocks of a transformer's encoder (Xiong et al. 2020, arXiv:2002.04745, "pre-LN").
pub(super) fn encoder(of: &Encoder, features: u64) -> Vec<Layer> {
    let attend = vec![Layer::LayerNorm, Layer::Attention(Attention { heads: of.heads })];
    let feed = vec![Layer::LayerNorm, linear(of.inner), Layer::Gelu, linear(features)];
    vec![Layer::Block(Block { layers: vec![residual(attend), residual(feed)], times: of.times })]
}

/// Blocks of a residual network (He et al. 2015, arXiv:1512.03385; in clips as `slowfast` has them, arXiv:1812.03982).
pub(super) fn bottleneck(of: &Bottleneck, rank: usize) -> Vec<Layer> {
    blocks(of.times, |first| {
        let step = if first { of.stride } else { 1 };
        let layers = vec![
            conv(of.inner, window(rank, of.frames, 1), Sizes::All(1), 1),
            Layer::BatchNorm,
            Layer::Relu,
            conv(of.inner, window(rank, 1, 3), window(rank, 1, step), 1),
            Layer::BatchNorm,
            Layer::Relu,
            conv(of.out, Sizes::All(1), Sizes::All(1), 1),
            Layer::BatchNorm,
        ];
        Residual { layers, shortcut: shortcut(first, of.out, rank, step) }
    })
}

/// Blocks of X3D (Feichtenhofer 2020, arXiv:2004.04730): the first of a stage halves height and width.
pub(super) fn mobile(of: &Mobile, rank: usize) -> Vec<Layer> {
    let mut number = 0;
    blocks(of.times, |first| {
        let step = if first { 2 } else { 1 };
        let mut layers = vec![
            conv(of.inner, Sizes::All(1), Sizes::All(1), 1),
            Layer::BatchNorm,
            Layer::Relu,
            conv(of.inner, Sizes::All(3), window(rank, 1, step), 0),
            Layer::BatchNorm,
        ];
        if number % 2 == 0 {
            // A sixteenth of the channels, rounded to eights.
            layers.push(Layer::Squeeze(Squeeze { inner: ((of.inner / 16 + 4) / 8 * 8).max(8) }));
        }
        number += 1;
        layers.extend([Layer::Silu, conv(of.out, Sizes::All(1), Sizes::All(1), 1), Layer::BatchNorm]);
        Residual { layers, shortcut: shortcut(first, of.out, rank, step) }
    })
}

/// One block after the other; the first is another than the rest.
fn blocks(times: u64, mut block: impl FnMut(bool) -> Residual) -> Vec<Layer> {
    let each = (0..times).map(|number| {
        let layers = vec![Layer::Residual(block(number == 0)), Layer::Relu];
        Layer::Block(Block { layers, times: 1 })
    });
    each.collect()
}

fn shortcut(first: bool, out: u64, rank: usize, step: u64) -> Vec<Layer> {
    if first {
        vec![conv(out, Sizes::All(1), window(rank, 1, step), 1), Layer::BatchNorm]
    } else {
        Vec::new()
    }
}

/// A window over `rank` dimensions of positions: so many frames where there are frames, and `side` in space.
fn window(rank: usize, frames: u64, side: u64) -> Sizes {
    if rank == 3 { Sizes::Each(vec![frames, side, side]) } else { Sizes::All(side) }
}

fn conv(out: u64, kernel: Sizes, stride: Sizes, groups: u64) -> Layer {
    Layer::Conv(Conv { out, kernel, stride, padding: None, groups, bias: false })
}

fn linear(out: u64) -> Layer {
    Layer::Linear(Linear { out, bias: true })
}

fn residual(layers: Vec<Layer>) -> Layer {
    Layer::Residual(Residual { layers, shortcut: Vec::new() })
}
