//! A narrower and shallower variant of a model, to say what that would save.

use super::Model;
use super::layer::{Layer, Residual};

impl Model {
    /// The model with so many thirds of its channels, features, heads and repeated blocks. What comes out stays as it is.
    #[must_use]
    pub(crate) fn narrowed(&self, thirds: u64) -> Self {
        let mut narrow = self.clone();
        let last = narrow.layers.len().saturating_sub(1);
        for layer in &mut narrow.layers[..last] {
            shrink(layer, thirds);
        }
        narrow
    }
}

/// Whole multiples of 16 stay so: heads divide them.
fn part(size: &mut u64, thirds: u64) {
    let less = size.saturating_mul(thirds) / 3;
    *size = if size.is_multiple_of(16) { (less / 16 * 16).max(16) } else { less.max(1) };
}

/// As a smaller transformer has them: 12 heads become 8, 12 blocks become 8.
fn count(number: &mut u64, thirds: u64) {
    *number = (*number * thirds / 3).max(1);
}

/// Heads that are no multiple of three stay as many: what is left of the features would not be divided by fewer.
fn heads(number: &mut u64, thirds: u64) {
    if number.is_multiple_of(3) {
        count(number, thirds);
    }
}

fn shrink(layer: &mut Layer, thirds: u64) {
    match layer {
        Layer::Linear(of) => part(&mut of.out, thirds),
        Layer::Conv(of) => {
            part(&mut of.out, thirds);
            of.groups = of.groups.min(1);
        }
        Layer::Attention(of) => heads(&mut of.heads, thirds),
        Layer::Embedding(of) => part(&mut of.size, thirds),
        Layer::Gru(of) => part(&mut of.hidden, thirds),
        Layer::Encoder(of) => {
            part(&mut of.inner, thirds);
            heads(&mut of.heads, thirds);
            count(&mut of.times, thirds);
        }
        Layer::Bottleneck(of) => {
            part(&mut of.inner, thirds);
            part(&mut of.out, thirds);
            count(&mut of.times, thirds);
        }
        Layer::Mobile(of) => {
            part(&mut of.inner, thirds);
            part(&mut of.out, thirds);
            count(&mut of.times, thirds);
        }
        Layer::Squeeze(of) => part(&mut of.inner, thirds),
        Layer::Widen(by) => part(by, thirds),
        Layer::EachFrame(layers) | Layer::Aside(layers) => layers.iter_mut().for_each(|l| shrink(l, thirds)),
        Layer::Block(of) => {
            count(&mut of.times, thirds);
            of.layers.iter_mut().for_each(|l| shrink(l, thirds));
        }
        Layer::Residual(Residual { layers, shortcut }) => {
            layers.iter_mut().chain(shortcut).for_each(|l| shrink(l, thirds));
        }
        Layer::Paths(paths) => paths.iter_mut().flatten().for_each(|l| shrink(l, thirds)),
        _ => (),
    }
}
