//! Why a model cannot be.

/// Why a model cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The file is not of this form.
    #[error("{0}")]
    Syntax(String),
    /// Input without a shape.
    #[error("[input] needs `shape`, or `channels` and `size`")]
    Input,
    /// A size of nothing, or one beyond anything.
    #[error("[input] has a size of {0}; sizes are from 1 to 1000000")]
    Size(u64),
    /// A layer cannot take what comes to it.
    #[error("`{layer}` needs {wanted}, and gets {shape:?}")]
    Shape {
        /// Its kind.
        layer: &'static str,
        /// What it takes.
        wanted: &'static str,
        /// What it gets.
        shape: Vec<u64>,
    },
    /// Sizes for another number of dimensions.
    #[error("`{layer}` names {given} sizes for {rank} dimensions")]
    Dimensions {
        /// Its kind.
        layer: &'static str,
        /// Sizes named.
        given: usize,
        /// Dimensions that there are.
        rank: usize,
    },
    /// A window that does not fit.
    #[error("`{layer}` has windows of {kernel} every {stride}, over {size} positions")]
    Window {
        /// Its kind.
        layer: &'static str,
        /// Size of the window.
        kernel: u64,
        /// Distance between windows.
        stride: u64,
        /// Positions with their padding.
        size: u64,
    },
    /// Channels that cannot be divided.
    #[error("`conv` cannot divide {channels} channels and {out} of its own into {groups} groups")]
    Groups {
        /// Channels that come in.
        channels: u64,
        /// Channels that come out.
        out: u64,
        /// Groups.
        groups: u64,
    },
    /// Features that cannot be divided.
    #[error("`attention` cannot divide {features} features into {heads} heads")]
    Heads {
        /// Features that come in.
        features: u64,
        /// Heads.
        heads: u64,
    },
    /// Two things that cannot be added.
    #[error("`residual` adds {branch:?} to {shortcut:?}: a `shortcut` must give the same shape")]
    Sum {
        /// Shape of the branch.
        branch: Vec<u64>,
        /// Shape of the other.
        shortcut: Vec<u64>,
    },
    /// Nothing is left.
    #[error("nothing is left after layer {number}")]
    Nothing {
        /// Which one, counted from 1 with those in groups.
        number: u64,
    },
    /// Beyond anything that is trained.
    #[error("layer {number} is larger than anything that can be trained")]
    Huge {
        /// As above.
        number: u64,
    },
    /// Too many layers.
    #[error("more than {most} layers")]
    Endless {
        /// Allowed.
        most: u64,
    },
}
