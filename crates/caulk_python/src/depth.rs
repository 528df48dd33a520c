//! How deep a syntax tree is, and stack for those who walk it.
//!
//! What could become a much deeper tree than [`MAX_LEVELS`] is not parsed, and what did become a deeper one is cut off
//! where files come in, so that nobody else has to count.

mod scan;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ModModule, Pattern, PySourceType, Stmt};
use ruff_python_parser::{Parsed, parse_unchecked_source};

pub(crate) use scan::MAX_LEVELS;

/// Stack that is enough for recursion over [`MAX_LEVELS`], from function to function, in a build without optimisation.
const ROOM: usize = 64 << 20;
/// Stack for one level.
const LEVEL: usize = 64 << 10;
/// A tree is dropped recursively: bytes of stack per level.
const DROP: usize = 1 << 10;

/// Largest source that is looked at, in bytes. Measured over 60 kinds of text that are made to be expensive, a check takes up
/// to 400 times as much memory (lists that are nested 390 deep; of usual code 20 times).
pub const MAX_BYTES: usize = 2 << 20;

/// f-strings that begin with a brace and may stand in one file. The time to read them where each stands inside the one
/// before grows with the square of their number: this many take a quarter of a second.
pub(crate) const MAX_FORMATTED: usize = 10_000;

/// Texts of fewer bytes are parsed however deep they are: that takes 30 MB at most.
const SHORT: usize = 16 << 10;

/// Why a text is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unparsed {
    /// It is longer than [`MAX_BYTES`].
    Long,
    /// It is nested too deep.
    Deep,
    /// It has too many f-strings.
    Formatted,
}

impl std::fmt::Display for Unparsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Long => write!(f, "not looked at, larger than {} MB", MAX_BYTES >> 20),
            Self::Deep => write!(f, "not looked at, nested deeper than {MAX_LEVELS} levels"),
            Self::Formatted => write!(f, "not looked at, more than {MAX_FORMATTED} f-strings"),
        }
    }
}

/// Parses a text whose tree will be of bounded size.
///
/// # Errors
/// [`Unparsed`] for texts that nobody writes, and that would take more memory or time than they are worth.
pub fn parse(text: &str, kind: PySourceType) -> Result<Parsed<ModModule>, Unparsed> {
    if text.len() > MAX_BYTES {
        Err(Unparsed::Long)
    } else if may_hang(text) {
        Err(Unparsed::Formatted)
    } else if text.len() > SHORT && scan::too_deep(text, kind) {
        Err(Unparsed::Deep)
    } else {
        Ok(parse_unchecked_source(text, kind))
    }
}

/// Whether a text might be one f-string inside the other, too deep to be read in bearable time.
fn may_hang(text: &str) -> bool {
    let opens =
        |bytes: &&[u8]| matches!(bytes, [b'f' | b'F' | b'r' | b'R' | b'"' | b'\'', b'"' | b'\'', b'{']);
    text.as_bytes().windows(3).filter(opens).count() > MAX_FORMATTED
}

/// Calls with enough stack to walk a tree recursively.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM, 2 * ROOM, work)
}

/// Stack that must be left before a recursion goes one level deeper, and stack that is added, in bytes.
const RED_ZONE: usize = 128 << 10;
const MORE: usize = 1 << 20;

/// Goes one level deeper into a tree, with more stack if little is left.
pub(crate) fn deeper<T>(walk: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, MORE, walk)
}

/// Empties a tree that is too deep, and says so.
pub(crate) fn bound(tree: &mut ModModule) -> bool {
    let mut levels = Levels { now: 0, most: 0 };
    levels.visit_body(&tree.body);
    let too_deep = levels.most > MAX_LEVELS;
    if too_deep {
        let stack = LEVEL + levels.most * DROP;
        stacker::maybe_grow(stack, stack, || tree.body.clear());
    }
    too_deep
}

struct Levels {
    now: usize,
    most: usize,
}

impl Levels {
    fn deeper(&mut self, walk: impl FnOnce(&mut Self)) {
        self.now += 1;
        self.most = self.most.max(self.now);
        stacker::maybe_grow(LEVEL, ROOM, || walk(self));
        self.now -= 1;
    }
}

impl<'a> Visitor<'a> for Levels {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.deeper(|levels| visitor::walk_stmt(levels, stmt));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.deeper(|levels| visitor::walk_expr(levels, expr));
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        self.deeper(|levels| visitor::walk_pattern(levels, pattern));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use ruff_python_parser::parse_module;

    use super::*;

    fn check(text: &str, kept: bool) {
        let mut tree = parse_module(text).unwrap().into_syntax();
        assert_eq!((bound(&mut tree), tree.body.is_empty()), (!kept, !kept), "{}", &text[..20]);
    }

    #[test]
    fn formatted_strings_are_counted_before_they_are_read() {
        assert!(may_hang(&"f'{".repeat(MAX_FORMATTED + 1)));
        assert!(may_hang(&"f\"\"\"{".repeat(MAX_FORMATTED + 1)));
        assert!(!may_hang(&"print(f'{x}')\n".repeat(MAX_FORMATTED)));
    }

    #[test]
    fn a_tree_is_kept_unless_it_is_deeper_than_people_write() {
        check(&format!("x = {}1\n", "1 + ".repeat(300)), true);
        check(&format!("x = {}1\n", "1 + ".repeat(500)), false);
        check(&format!("x = {}1{}\n", "(".repeat(200), ")".repeat(200)), true);
        check(&format!("x = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000)), false);
        check(&format!("if x:\n    pass\n{}", "elif x:\n    pass\n".repeat(5_000)), true);
    }
}
