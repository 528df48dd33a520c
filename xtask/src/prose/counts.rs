//! How often a word is used in each kind of file.

use std::ops::AddAssign;
use std::path::Path;

/// How often a word is used: in pages (Markdown), in Rust and in Python.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub pages: usize,
    pub rust: usize,
    pub python: usize,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Page,
    Rust,
    Python,
}

impl AddAssign<(Kind, usize)> for Counts {
    fn add_assign(&mut self, (kind, count): (Kind, usize)) {
        *match kind {
            Kind::Page => &mut self.pages,
            Kind::Rust => &mut self.rust,
            Kind::Python => &mut self.python,
        } += count;
    }
}

impl Counts {
    /// The numbers of this count and another, kind by kind.
    pub(crate) fn beside(self, other: Self) -> [(Kind, usize, usize); 3] {
        [
            (Kind::Page, self.pages, other.pages),
            (Kind::Rust, self.rust, other.rust),
            (Kind::Python, self.python, other.python),
        ]
    }
}

impl Kind {
    /// The kind of a file; `None` if it holds no prose.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "md" => Some(Self::Page),
            "rs" => Some(Self::Rust),
            "py" => Some(Self::Python),
            _ => None,
        }
    }

    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "pages",
            Self::Rust => "rust",
            Self::Python => "python",
        }
    }
}
