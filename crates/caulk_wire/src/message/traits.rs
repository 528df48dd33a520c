//! Facts about what a container holds, from which the class of a leak follows.
//!
//! A trait is sent and recorded by its name: a name of another version is kept as [`Trait::Unknown`].

use std::fmt;

use crate::codec::{DecodeError, Field};

macro_rules! traits {
    ($($(#[$meta:meta])* $variant:ident = $text:literal,)*) => {
        /// A fact about what a container holds.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Trait {
            $($(#[$meta])* $variant,)*
            /// The container says itself that it holds so many elements at most.
            Capacity(u64),
            /// Sequence numbers of the oldest and of the newest node of its graph.
            Numbers {
                /// The oldest.
                oldest: u64,
                /// The newest.
                newest: u64,
            },
            /// The elements are a chain: each refers to the one before it by this name; empty where none is known.
            Link(String),
            /// It is the value of a local variable as well.
            Also {
                /// Qualified name of the function.
                function: String,
                /// The variable.
                variable: String,
            },
            /// A fact that another version of caulk knows.
            Unknown(String),
        }

        impl Trait {
            /// Every trait that is no more than its name.
            pub const PLAIN: &'static [Self] = &[$(Self::$variant),*];

            /// The name of a trait that is no more than that.
            const fn name(&self) -> Option<&'static str> {
                match self { $(Self::$variant => Some($text),)* _ => None }
            }

            fn plain(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

traits! {
    /// An array of numpy is among what the elements keep.
    Array = "array",
    /// A tensor whose memory belongs to somebody else, such as an array.
    Borrowed = "borrowed",
    /// A tensor on a GPU.
    OnCuda = "device:cuda",
    /// One part of the keys is the number of the epoch.
    EpochKey = "epoch-key",
    /// An exception.
    Exception = "exception",
    /// A figure of matplotlib, or what manages one.
    Figure = "figure",
    /// A frame of a function.
    Frame = "frame",
    /// A function, a method or a `functools.partial`.
    Function = "function",
    /// A tensor with an autograd graph.
    Graph = "graph",
    /// All elements are of types of installed packages.
    Installed = "installed",
    /// The bytes were found by following what lasts from census to census.
    Lasts = "lasts",
    /// A record of `logging`.
    LogRecord = "log-record",
    /// A module of torch.
    Module = "module",
    /// An optimizer of torch.
    Optimizer = "optimizer",
    /// Several elements share a graph.
    Overlapping = "overlapping",
    /// All elements are plain rows.
    Record = "record",
    /// One tensor that is replaced by a larger one.
    Replaced = "replaced",
    /// All elements are numbers, strings and the like.
    Scalar = "scalar",
    /// The first part of every key is an instance, as in the cache of a method.
    SelfKey = "self-key",
    /// What the elements keep is kept by others, too.
    Shared = "shared",
    /// A tensor.
    Tensor = "tensor",
    /// A key is or holds a tensor.
    TensorKey = "tensor-key",
}

impl Trait {
    /// The trait with this text.
    pub fn from_text(text: &str) -> Self {
        Self::plain(text).or_else(|| Self::composed(text)).unwrap_or_else(|| Self::Unknown(text.to_owned()))
    }

    fn composed(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        match name {
            "capacity" => rest.parse().ok().map(Self::Capacity),
            "numbers" => {
                let (oldest, newest) = rest.split_once(':')?;
                Some(Self::Numbers { oldest: oldest.parse().ok()?, newest: newest.parse().ok()? })
            }
            "link" => Some(Self::Link(rest.to_owned())),
            "also" => {
                let (function, variable) = rest.split_once(':')?;
                Some(Self::Also { function: function.to_owned(), variable: variable.to_owned() })
            }
            _ => None,
        }
    }
}

/// The text by which it is sent and recorded.
impl fmt::Display for Trait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(most) => write!(f, "capacity:{most}"),
            Self::Numbers { oldest, newest } => write!(f, "numbers:{oldest}:{newest}"),
            Self::Link(name) => write!(f, "link:{name}"),
            Self::Also { function, variable } => write!(f, "also:{function}:{variable}"),
            Self::Unknown(text) => f.write_str(text),
            plain => f.write_str(plain.name().unwrap_or_default()),
        }
    }
}

impl Field for Trait {
    fn write(&self, out: &mut Vec<u8>) {
        self.to_string().write(out);
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        String::read(input).map(|text| Self::from_text(&text))
    }

    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Link(text) | Self::Unknown(text) => change(text),
            Self::Also { function, variable } => {
                change(function);
                change(variable);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(known: &Trait, text: &str) {
        assert_eq!(known.to_string(), text);
        assert_eq!(Trait::from_text(text), *known);
        let mut bytes = Vec::new();
        known.write(&mut bytes);
        assert_eq!(Trait::read(&mut bytes.as_slice()).as_ref(), Ok(known));
    }

    #[test]
    fn a_trait_is_its_text_and_back() {
        for plain in Trait::PLAIN {
            check(plain, plain.name().unwrap_or_default());
        }
        check(&Trait::OnCuda, "device:cuda");
        check(&Trait::Capacity(512), "capacity:512");
        check(&Trait::Numbers { oldest: 3, newest: 90 }, "numbers:3:90");
        check(&Trait::Link("previous".into()), "link:previous");
        let also = Trait::Also { function: "Meter.push".into(), variable: "rows['a:b']".into() };
        check(&also, "also:Meter.push:rows['a:b']");
    }

    #[test]
    fn what_another_version_says_is_kept_as_it_is() {
        for text in ["on-disk", "capacity:many", "numbers:3", "also:f", "device:xpu", ""] {
            check(&Trait::Unknown(text.into()), text);
        }
    }
}
