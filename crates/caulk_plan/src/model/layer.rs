//! What a model is made of, as a file says it.

use serde::Deserialize;

/// One layer, or a group of them. Shapes are of one sample: `[features]`, `[tokens, features]`,
/// `[channels, height, width]` or `[channels, frames, height, width]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::enum_variant_names, reason = "layer normalisation is called so")]
pub(crate) enum Layer {
    /// A fully connected layer, over the last dimension.
    Linear(Linear),
    /// A convolution, in as many dimensions as its input has beside the channels.
    Conv(Conv),
    /// Batch normalisation.
    BatchNorm,
    /// Layer normalisation over the last dimension.
    LayerNorm,
    /// An activation that keeps its output for the backward pass.
    Relu,
    /// As [`Layer::Relu`].
    Sigmoid,
    /// An activation that keeps its input for the backward pass.
    Gelu,
    /// As [`Layer::Gelu`].
    Silu,
    /// Dropout: keeps a mask of one byte per element.
    Dropout,
    /// Maximum over windows.
    MaxPool(Window),
    /// Average over windows.
    AvgPool(Window),
    /// Average over all positions: `[channels, ...]` to `[channels]`, `[tokens, features]` to `[features]`.
    GlobalPool,
    /// Everything in one dimension.
    Flatten,
    /// `[channels, ...]` to `[positions, channels]`.
    Tokens,
    /// A learned embedding added to every token, after `class_tokens` more of them have been put in front.
    Positions(Positions),
    /// The first token alone.
    FirstToken,
    /// A table of vectors for token numbers: `[tokens]` to `[tokens, size]`.
    Embedding(Embedding),
    /// Self-attention with its projections.
    Attention(Attention),
    /// A gated recurrent unit over tokens.
    Gru(Gru),
    /// The same layers for every frame of a clip.
    EachFrame(Vec<Layer>),
    /// Every so many-th frame of a clip.
    EveryFrame(u64),
    /// Layers whose result is added to their input, or to what `shortcut` makes of it.
    Residual(Residual),
    /// Layers that gradient checkpointing computes again as one.
    Block(Block),
    /// Layers beside the main path, whose result goes elsewhere.
    Aside(Vec<Layer>),
    /// So many channels that come from elsewhere are put beside.
    Widen(u64),
    /// Several paths from one input, whose results (vectors) are put side by side.
    Paths(Vec<Vec<Layer>>),
    /// Squeeze and excitation: channels weighed by what two small layers make of their averages.
    Squeeze(Squeeze),
    /// Blocks of a transformer's encoder, normalisation first.
    Encoder(Encoder),
    /// Blocks of a residual network: 1x1, 3x3, 1x1.
    Bottleneck(Bottleneck),
    /// Blocks of X3D: 1x1x1, depthwise 3x3x3, 1x1x1, every other one with [`Layer::Squeeze`].
    Mobile(Mobile),
}

impl Layer {
    /// Is it made of others?
    pub(crate) const fn is_group(&self) -> bool {
        use Layer::{Aside, Block, Bottleneck, EachFrame, Encoder, Mobile, Paths, Residual, Squeeze};
        matches!(
            self,
            Aside(_)
                | Block(_)
                | Bottleneck(_)
                | EachFrame(_)
                | Encoder(_)
                | Mobile(_)
                | Paths(_)
                | Residual(_)
                | Squeeze(_)
        )
    }
}

/// One number for every dimension, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Sizes {
    /// The same for each.
    All(u64),
    /// One for each, in the order of the shape.
    Each(Vec<u64>),
}

/// See [`Layer::Linear`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Linear {
    /// Features that come out.
    pub(crate) out: u64,
    /// Is a vector added?
    #[serde(default = "yes")]
    pub(crate) bias: bool,
}

/// See [`Layer::Conv`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conv {
    /// Channels that come out.
    pub(crate) out: u64,
    /// Size of the window.
    pub(crate) kernel: Sizes,
    /// Distance between windows.
    #[serde(default = "one")]
    pub(crate) stride: Sizes,
    /// Zeros around the input; half the window unless it is said.
    pub(crate) padding: Option<Sizes>,
    /// Groups of channels that do not see each other; 0 for one per channel.
    #[serde(default = "single")]
    pub(crate) groups: u64,
    /// Is a number added per channel?
    #[serde(default)]
    pub(crate) bias: bool,
}

/// See [`Layer::MaxPool`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    /// Size of the window.
    pub(crate) kernel: Sizes,
    /// Distance between windows; their size unless it is said.
    pub(crate) stride: Option<Sizes>,
    /// Zeros around the input.
    #[serde(default = "zero")]
    pub(crate) padding: Sizes,
}

/// See [`Layer::Positions`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Positions {
    /// Tokens put in front.
    #[serde(default)]
    pub(crate) class_tokens: u64,
}

/// See [`Layer::Embedding`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Embedding {
    /// Different tokens.
    pub(crate) count: u64,
    /// Features of each.
    pub(crate) size: u64,
}

/// See [`Layer::Attention`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attention {
    /// Heads.
    pub(crate) heads: u64,
}

/// See [`Layer::Gru`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gru {
    /// Features that come out, per direction.
    pub(crate) hidden: u64,
    /// Layers on top of each other.
    #[serde(default = "single")]
    pub(crate) layers: u64,
    /// Once from each end?
    #[serde(default)]
    pub(crate) bidirectional: bool,
}

/// See [`Layer::Residual`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Residual {
    /// The branch.
    pub(crate) layers: Vec<Layer>,
    /// What is made of the input before it is added; the input itself unless it is said.
    #[serde(default)]
    pub(crate) shortcut: Vec<Layer>,
}

/// See [`Layer::Block`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    /// The layers.
    pub(crate) layers: Vec<Layer>,
    /// So many times, one after the other, each with weights of its own.
    #[serde(default = "single")]
    pub(crate) times: u64,
}

/// See [`Layer::Squeeze`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Squeeze {
    /// Channels in the middle.
    pub(crate) inner: u64,
}

/// See [`Layer::Encoder`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encoder {
    /// Heads.
    pub(crate) heads: u64,
    /// Features in the middle of the feed-forward part.
    pub(crate) inner: u64,
    /// Blocks.
    pub(crate) times: u64,
}

/// See [`Layer::Bottleneck`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bottleneck {
    /// Channels in the middle.
    pub(crate) inner: u64,
    /// Channels that come out.
    pub(crate) out: u64,
    /// Blocks.
    pub(crate) times: u64,
    /// Stride of the first, in space.
    #[serde(default = "single")]
    pub(crate) stride: u64,
    /// Frames that the first convolution sees, in clips.
    #[serde(default = "single")]
    pub(crate) frames: u64,
}

/// See [`Layer::Mobile`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mobile {
    /// Channels in the middle.
    pub(crate) inner: u64,
    /// Channels that come out.
    pub(crate) out: u64,
    /// Blocks.
    pub(crate) times: u64,
}

fn yes() -> bool {
    true
}

fn single() -> u64 {
    1
}

fn zero() -> Sizes {
    Sizes::All(0)
}

fn one() -> Sizes {
    Sizes::All(1)
}
