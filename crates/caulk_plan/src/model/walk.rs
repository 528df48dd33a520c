//! Goes through a model's layers with the shape of one sample, and adds up what training keeps.
//!
//! Autograd keeps what each layer's backward pass asks for, each tensor once: a tensor is counted when the layer that made
//! it or one that reads it saves it. Source: `derivatives.yaml` of torch 2.11, and what `saved_tensors_hooks` counted for
//! each layer. Under autocast, matrix products and convolutions save 16-bit copies, normalisation stays at 32 bit.

use super::flow::{Flow, clip, dimensions, pooled, pooled_size, tokens, windows, wrong};
use super::keep::{Cost, FULL, Mode, Walk};
use super::layer::{Attention, Block, Conv, Gru, Layer, Positions, Residual, Sizes, Squeeze};
use super::{ModelError, stages};
use crate::Estimate;

/// Layers that are gone through; more are a mistake.
const MOST_LAYERS: u64 = 100_000;
/// Nothing in a model is larger, in elements: a number beyond it is a mistake.
const LARGEST: f64 = 1e15;

/// Adds up what a model needs for inputs of this shape, and gives the shape of what comes out.
///
/// # Errors
/// [`ModelError`] where a layer cannot take what comes to it.
pub(crate) fn walk(layers: &[Layer], input: &[u64], mode: Mode) -> Result<(Cost, Vec<u64>), ModelError> {
    let mut walk = Walk { mode, held: 0.0, cost: Cost::default(), layers: 0 };
    let flow = Flow { shape: input.to_vec(), copies: 1.0, item: FULL, saved: false, learned: false };
    let flow = walk.all(layers, flow)?;
    Ok((walk.cost, flow.shape))
}

impl Walk {
    fn all(&mut self, layers: &[Layer], flow: Flow) -> Result<Flow, ModelError> {
        layers.iter().try_fold(flow, |flow, layer| self.one(layer, flow))
    }

    fn one(&mut self, layer: &Layer, mut flow: Flow) -> Result<Flow, ModelError> {
        self.layers += 1;
        if self.layers > MOST_LAYERS {
            return Err(ModelError::Endless { most: MOST_LAYERS });
        }
        let read = flow.clone();
        let out = match layer {
            Layer::Linear(linear) => {
                let shape = [&flow.shape[..flow.shape.len().saturating_sub(1)], &[linear.out]].concat();
                let inputs = flow.last() as f64;
                self.product(&mut flow, shape, inputs * linear.out as f64, bias(linear.bias, linear.out))
            }
            Layer::Conv(conv) => self.conv(conv, &mut flow)?,
            Layer::BatchNorm => self.batch_norm(&mut flow),
            Layer::LayerNorm => self.layer_norm(&mut flow),
            Layer::Relu | Layer::Sigmoid => {
                let mut out = flow.to(flow.shape.clone());
                self.keep_if_learned(&mut out);
                out
            }
            Layer::Gelu | Layer::Silu => {
                self.keep_if_learned(&mut flow);
                flow.to(flow.shape.clone())
            }
            Layer::Dropout => {
                self.add(if flow.learned { flow.elements() } else { 0.0 });
                flow.to(flow.shape.clone())
            }
            Layer::MaxPool(window) => {
                self.keep_if_learned(&mut flow);
                let out = pooled(window, &flow, "max-pool")?;
                // The place of each maximum, as a 64-bit number.
                self.add(if flow.learned { out.elements() * 8.0 } else { 0.0 });
                out
            }
            Layer::AvgPool(window) => {
                self.keep_if_learned(&mut flow);
                pooled(window, &flow, "avg-pool")?
            }
            Layer::GlobalPool => flow.to(vec![pooled_size(&flow)?]),
            Layer::Flatten => {
                let size = flow.shape.iter().fold(1, |all: u64, size| all.saturating_mul(*size));
                Flow { shape: vec![size], ..flow }
            }
            Layer::Tokens => {
                let (channels, positions) =
                    flow.shape.split_first().ok_or(wrong("tokens", "an image", &flow))?;
                let positions = positions.iter().fold(1, |all: u64, size| all.saturating_mul(*size));
                Flow { shape: vec![positions, *channels], ..flow }
            }
            Layer::Positions(positions) => self.positions(positions, &flow)?,
            Layer::FirstToken => flow.to(vec![tokens(&flow, "first-token")?.1]),
            Layer::Embedding(table) => {
                self.cost.parameters += table.count as f64 * table.size as f64;
                // The token numbers are kept.
                self.add(flow.elements() * 8.0);
                let shape = [&flow.shape[..], &[table.size]].concat();
                Flow { learned: true, ..flow.to(shape) }
            }
            Layer::Attention(attention) => self.attention(attention, &mut flow)?,
            Layer::Gru(gru) => self.gru(gru, &mut flow)?,
            Layer::EachFrame(layers) => self.each_frame(layers, &flow)?,
            Layer::EveryFrame(every) => {
                let (channels, frames, height, width) = clip(&flow, "every-frame")?;
                flow.to(vec![channels, frames.div_ceil((*every).max(1)), height, width])
            }
            Layer::Residual(residual) => self.residual(residual, flow)?,
            Layer::Block(block) => self.block(block, flow)?,
            Layer::Aside(layers) => {
                let mut main = flow.clone();
                self.all(layers, flow)?;
                // What stands beside has read it first.
                main.saved = true;
                main
            }
            Layer::Widen(by) => {
                let mut shape = flow.shape.clone();
                if let Some(channels) = shape.first_mut() {
                    *channels = channels.saturating_add(*by);
                }
                flow.to(shape)
            }
            Layer::Paths(paths) => self.paths(paths, &flow)?,
            Layer::Squeeze(squeeze) => self.squeeze(squeeze, &mut flow)?,
            Layer::Encoder(encoder) => self.all(&stages::encoder(encoder, flow.last()), flow)?,
            Layer::Bottleneck(of) => {
                room(of.times)?;
                self.all(&stages::bottleneck(of, flow.shape.len().saturating_sub(1)), flow)?
            }
            Layer::Mobile(of) => {
                room(of.times)?;
                self.all(&stages::mobile(of, flow.shape.len().saturating_sub(1)), flow)?
            }
        };
        if out.elements() < 1.0 {
            return Err(ModelError::Nothing { number: self.layers });
        }
        if out.elements() > LARGEST || self.cost.parameters > LARGEST {
            return Err(ModelError::Huge { number: self.layers });
        }
        if !layer.is_group() {
            self.reach(layer, &read, &out);
        }
        Ok(out)
    }

    fn conv(&mut self, conv: &Conv, flow: &mut Flow) -> Result<Flow, ModelError> {
        let half: Vec<u64> =
            dimensions(&conv.kernel, flow, "conv")?.iter().map(|kernel| kernel / 2).collect();
        let padding = conv.padding.clone().unwrap_or(Sizes::Each(half));
        let shape = windows(flow, conv.out, &conv.kernel, &conv.stride, &padding, "conv")?;
        let channels = flow.shape[0];
        let groups = if conv.groups == 0 { channels.min(conv.out) } else { conv.groups };
        if !channels.is_multiple_of(groups) || !conv.out.is_multiple_of(groups) {
            return Err(ModelError::Groups { channels, out: conv.out, groups });
        }
        let window: f64 =
            dimensions(&conv.kernel, flow, "conv")?.iter().map(|kernel| *kernel as f64).product();
        let weights = (channels / groups) as f64 * conv.out as f64 * window;
        Ok(self.product(flow, shape, weights, bias(conv.bias, conv.out)))
    }

    fn batch_norm(&mut self, flow: &mut Flow) -> Flow {
        let channels = flow.shape.first().copied().unwrap_or(1) as f64;
        self.keep(flow);
        self.cost.parameters += 2.0 * channels;
        self.cost.buffers += 2.0 * channels * FULL;
        self.cost.batch_norm = true;
        Flow { learned: true, ..flow.to(flow.shape.clone()) }
    }

    fn layer_norm(&mut self, flow: &mut Flow) -> Flow {
        self.keep_as(flow, FULL);
        // Mean and deviation of each row.
        self.add(2.0 * FULL * flow.elements() / flow.last().max(1) as f64);
        self.cost.parameters += 2.0 * flow.last() as f64;
        Flow { item: FULL, learned: true, ..flow.to(flow.shape.clone()) }
    }

    fn positions(&mut self, of: &Positions, flow: &Flow) -> Result<Flow, ModelError> {
        let (count, features) = tokens(flow, "positions")?;
        let count = count.saturating_add(of.class_tokens);
        self.cost.parameters += (count as f64 + of.class_tokens as f64) * features as f64;
        Ok(Flow { item: FULL, learned: true, ..flow.to(vec![count, features]) })
    }

    fn attention(&mut self, of: &Attention, flow: &mut Flow) -> Result<Flow, ModelError> {
        let (count, features) = tokens(flow, "attention")?;
        if of.heads == 0 || features % of.heads != 0 {
            return Err(ModelError::Heads { features, heads: of.heads });
        }
        let squared = features as f64 * features as f64;
        let mut projected =
            self.product(flow, vec![count, 3 * features], 3.0 * squared, 3.0 * features as f64);
        self.keep(&mut projected);
        let rows = count as f64 * of.heads as f64 * flow.copies;
        // Fused attention keeps one number per row and head; without it, the weights and what softmax makes of them.
        let weights = rows * count as f64 * self.item();
        self.cost.saved =
            self.cost.saved + Estimate::between(rows * FULL, rows * FULL, (2.0 * weights).max(rows * FULL));
        let mut attended = projected.to(vec![count, features]);
        let out = self.product(&mut attended, vec![count, features], squared, features as f64);
        Ok(out)
    }

    fn gru(&mut self, of: &Gru, flow: &mut Flow) -> Result<Flow, ModelError> {
        let (count, features) = tokens(flow, "gru")?;
        room(of.layers)?;
        let directions = if of.bidirectional { 2 } else { 1 };
        let (hidden, wide) = (of.hidden as f64, of.hidden.saturating_mul(directions));
        let mut inputs = features as f64;
        let mut out = flow.clone();
        for _ in 0..of.layers.max(1) {
            let weights = 3.0 * hidden * (inputs + hidden) * directions as f64;
            let next = self.product(&mut out, vec![count, wide], weights, 6.0 * wide as f64);
            // Gates and states of every token: seven numbers on the CPU, five or six in cuDNN's reserve.
            let state = next.bytes();
            self.cost.saved = self.cost.saved + Estimate::between(5.0 * state, 7.0 * state, 8.0 * state);
            (out, inputs) = (next, wide as f64);
        }
        Ok(out)
    }

    fn each_frame(&mut self, layers: &[Layer], flow: &Flow) -> Result<Flow, ModelError> {
        let (channels, frames, height, width) = clip(flow, "each-frame")?;
        let copies = flow.copies * frames as f64;
        let one = Flow { copies, ..flow.to(vec![channels, height, width]) };
        let out = self.all(layers, one)?;
        let shape = match out.shape.as_slice() {
            [features] => vec![frames, *features],
            [channels, rest @ ..] => [&[*channels, frames], rest].concat(),
            [] => vec![frames],
        };
        Ok(Flow { shape, copies: flow.copies, ..out })
    }

    fn residual(&mut self, of: &Residual, mut flow: Flow) -> Result<Flow, ModelError> {
        let before = flow.clone();
        // The branch's first layer may save what the shortcut reads, too.
        let saved = self.cost.saved;
        self.held += before.bytes();
        let branch = self.all(&of.layers, flow.clone())?;
        self.held -= before.bytes();
        flow.saved = flow.saved || self.cost.saved != saved;
        let shortcut = if of.shortcut.is_empty() { flow } else { self.all(&of.shortcut, flow)? };
        if branch.shape != shortcut.shape {
            return Err(ModelError::Sum { branch: branch.shape, shortcut: shortcut.shape });
        }
        let item = branch.item.max(if of.shortcut.is_empty() { before.item } else { shortcut.item });
        Ok(Flow { item, learned: true, ..branch.to(branch.shape.clone()) })
    }

    fn block(&mut self, block: &Block, mut flow: Flow) -> Result<Flow, ModelError> {
        room(block.times)?;
        for _ in 0..block.times {
            if !self.mode.checkpointing {
                flow = self.all(&block.layers, flow)?;
                continue;
            }
            self.keep(&mut flow);
            let before = self.cost.saved;
            flow = Flow { saved: false, ..self.all(&block.layers, flow)? };
            self.cost.saved = before;
        }
        Ok(flow)
    }

    fn paths(&mut self, paths: &[Vec<Layer>], flow: &Flow) -> Result<Flow, ModelError> {
        let mut features = 0_u64;
        for path in paths {
            let out = self.all(path, flow.clone())?;
            let [size] = out.shape.as_slice() else {
                return Err(wrong("paths", "a vector from each path", &out));
            };
            features = features.saturating_add(*size);
        }
        Ok(Flow { item: self.item(), learned: true, ..flow.to(vec![features]) })
    }

    fn squeeze(&mut self, of: &Squeeze, flow: &mut Flow) -> Result<Flow, ModelError> {
        let channels = pooled_size(flow)?;
        let layers = [
            Layer::GlobalPool,
            Layer::Linear(super::layer::Linear { out: of.inner, bias: true }),
            Layer::Relu,
            Layer::Linear(super::layer::Linear { out: channels, bias: true }),
            Layer::Sigmoid,
        ];
        self.all(&layers, flow.clone())?;
        self.keep(flow);
        Ok(flow.to(flow.shape.clone()))
    }
}

/// Are so many repetitions few enough to go through?
fn room(times: u64) -> Result<(), ModelError> {
    if times > MOST_LAYERS { Err(ModelError::Endless { most: MOST_LAYERS }) } else { Ok(()) }
}

fn bias(there: bool, out: u64) -> f64 {
    if there { out as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::Model;

    fn cost(layers: &str, shape: &str, mode: Mode) -> Cost {
        let text = format!("name = 'x'\nlayers = [{layers}]\n[input]\nshape = [{shape}]");
        Model::parse(&text).unwrap().cost(None, None, mode).unwrap()
    }

    /// `bytes`: what `saved_tensors_hooks` of torch 2.11 counted on the CPU for one sample, each storage once, without
    /// parameters.
    fn check(layers: &str, shape: &str, bytes: f64) {
        let found = cost(layers, shape, Mode::default()).saved;
        let inside = found.low <= bytes * 1.001 && bytes <= found.high * 1.001;
        assert!(inside && (found.likely - bytes).abs() <= 0.02 * bytes, "{layers}: {found:?}, not {bytes}");
    }

    #[test]
    fn layers_keep_what_torch_keeps() {
        check("{ linear = { out = 128 } }", "10, 64", 2560.0);
        check("{ conv = { out = 16, kernel = 3 } }", "8, 16, 16", 8192.0);
        check("{ conv = { out = 16, kernel = 3 } }", "8, 4, 16, 16", 32768.0);
        check("'layer-norm'", "10, 64", 2640.0);
        check("{ gru = { hidden = 32 } }", "50, 64", 57600.0);
        check("{ attention = { heads = 4 } }", "64, 64", 82944.0);
        check("'relu', { max-pool = { kernel = 2 } }, 'dropout'", "8, 16, 16", 0.0);
    }

    #[test]
    fn a_tensor_that_two_layers_keep_is_counted_once() {
        // The activation keeps its output, which is what the second convolution keeps of its input.
        let both = "{ conv = { out = 8, kernel = 3 } }, 'relu', { conv = { out = 8, kernel = 3 } }";
        check(both, "8, 16, 16", 16384.0);
        check("{ encoder = { heads = 4, inner = 256, times = 1 } }", "64, 64", 198_656.0 + 65_536.0);
    }

    #[test]
    fn autocast_halves_products_and_keeps_weights_again() {
        let mixed = Mode { mixed: true, ..Mode::default() };
        let cost = cost("{ linear = { out = 128 } }", "10, 64", mixed);
        assert_eq!((cost.saved.likely, cost.copies), (1280.0, 64.0 * 128.0 * 2.0));
    }

    #[test]
    fn checkpointing_keeps_the_inputs_of_blocks() {
        let encoder = "{ encoder = { heads = 4, inner = 256, times = 6 } }";
        let kept = cost(encoder, "64, 64", Mode { checkpointing: true, ..Mode::default() });
        assert!((kept.saved.likely - 6.0 * 64.0 * 64.0 * 4.0).abs() < 1.0, "{kept:?}");
        let all = cost(encoder, "64, 64", Mode::default());
        let again = kept.reached.likely - kept.saved.likely;
        assert!(again > all.saved.likely / 7.0, "one of six blocks is kept at a time");
    }

    fn check_refusal(layers: &str, shape: &str, text: &str) {
        let model = Model::parse(&format!("name = 'x'\nlayers = [{layers}]\n[input]\nshape = [{shape}]"));
        let error = model.and_then(|model| model.cost(None, None, Mode::default())).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check_refusal("{ conv = { out = 8, kernel = 9, padding = 0 } }", "3, 4, 4", "windows of 9");
        check_refusal("{ conv = { out = 8, kernel = 3, groups = 2 } }", "3, 4, 4", "3 channels");
        check_refusal("{ conv = { out = 8, kernel = [3] } }", "3, 4, 4", "1 sizes for 2 dimensions");
        check_refusal("{ attention = { heads = 5 } }", "4, 64", "5 heads");
        check_refusal("{ linear = { out = 0 } }", "4", "nothing is left after layer 1");
        check_refusal("{ linear = { out = 999999999999999999 } }", "4", "larger than anything");
        check_refusal(
            "{ bottleneck = { inner = 1, out = 1, times = 999999999 } }",
            "3, 4, 4",
            "more than 100000",
        );
        check_refusal("{ residual = { layers = [{ linear = { out = 3 } }] } }", "4", "a `shortcut`");
        check_refusal("'relu'", "0", "a size of 0");
        check_refusal("'rleu'", "4", "unknown variant `rleu`");
        check_refusal("{ each-frame = ['relu'] }", "4", "[channels, frames, height, width]");
    }
}
