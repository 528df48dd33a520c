//! How deep a text is nested, before anybody makes a tree of it.
//!
//! The parser calls itself for what is open (brackets, `not`, `lambda`, `**`, `else`), a kilobyte or more of stack for a
//! byte of source, and hangs what is chained (`a.b().c + d`) into a tree that is taken apart recursively. Tokens tell both,
//! in one pass that takes no memory. What is counted here is never less than the tree's depth, and seldom much more.

use ruff_python_ast::PySourceType;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{AsMode, lexer};

/// Levels of a tree that is looked at. CPython gives up at 100 levels of blocks and 200 of parentheses; long sums go
/// deeper, one level for each operator.
pub(crate) const MAX_LEVELS: usize = 400;

/// Brackets, operators and blocks that may be open at a time. CPython allows 200 brackets and 100 blocks.
const MAX_OPEN: usize = MAX_LEVELS;
/// Links that one chain may have: a sum of a thousand calls is no tree of this depth.
const MAX_CHAIN: usize = 5_000;

/// Whether a text is nested or chained too deep to be parsed in bounded memory.
pub(super) fn too_deep(text: &str, kind: PySourceType) -> bool {
    let mut lexer = lexer::lex(text, kind.as_mode());
    let mut scan = Scan::default();
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return false,
            token => scan.take(token),
        }
        if scan.is_too_deep() {
            return true;
        }
    }
}

/// What is between two brackets, or outside of all.
#[derive(Debug, Default)]
struct Level {
    /// The token that closes it.
    end: Option<TokenKind>,
    /// Attributes, calls, subscripts and operators since the last comma.
    links: usize,
    /// Operators before an operand that have not got it yet.
    prefix: usize,
    /// `lambda`, `else` and `**`, which reach to the next comma.
    right: usize,
    /// `lambda`s whose parameters have not ended.
    lambdas: usize,
    /// Depth of the deepest brackets since the last comma.
    inner: usize,
    /// The same before it, with what was around them.
    before: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.links + self.prefix + self.right + self.inner
    }
}

#[derive(Debug, Default)]
struct Scan {
    around: Vec<Level>,
    now: Level,
    /// Prefixes and right parts of all levels.
    open: usize,
    blocks: usize,
    last: Option<TokenKind>,
}

impl Scan {
    fn is_too_deep(&self) -> bool {
        self.around.len() + self.open + self.blocks > MAX_OPEN || self.now.depth() > MAX_CHAIN
    }

    fn take(&mut self, token: TokenKind) {
        use TokenKind as T;
        let operand = self.last.is_some_and(is_operand);
        match token {
            T::Comment | T::NonLogicalNewline => return,
            T::Indent => self.blocks += 1,
            T::Dedent => self.blocks = self.blocks.saturating_sub(1),
            T::Newline | T::Semi => self.end_run(),
            // Parameters of a `lambda` are a part of it.
            T::Comma if self.now.lambdas == 0 => self.end_run(),
            T::Colon => self.colon(),
            T::Lpar => self.push(T::Rpar, operand),
            T::Lsqb => self.push(T::Rsqb, operand),
            T::Lbrace => self.push(T::Rbrace, false),
            T::FStringStart => self.push(T::FStringEnd, false),
            T::TStringStart => self.push(T::TStringEnd, false),
            // The parser goes on behind a bracket that closes nothing.
            _ if self.now.end == Some(token) => self.pop(),
            T::Lambda => {
                self.now.lambdas += 1;
                self.right();
            }
            T::Else => self.right(),
            T::DoubleStar if operand => {
                self.now.links += 1;
                self.right();
            }
            T::Not | T::Tilde | T::Await | T::Yield => self.prefix(),
            T::Plus | T::Minus | T::Star | T::DoubleStar if !operand => self.prefix(),
            token if is_operand(token) => (),
            token => {
                self.now.links += usize::from(is_link(token));
                self.end_prefix();
            }
        }
        self.last = Some(token);
    }

    /// The one behind `else` in a block of its own.
    fn colon(&mut self) {
        self.now.lambdas = self.now.lambdas.saturating_sub(1);
        if self.last == Some(TokenKind::Else) && self.now.right > 0 {
            self.now.right -= 1;
            self.open -= 1;
        }
    }

    fn prefix(&mut self) {
        self.now.prefix += 1;
        self.open += 1;
    }

    fn right(&mut self) {
        self.now.right += 1;
        self.open += 1;
    }

    fn end_prefix(&mut self) {
        self.open -= self.now.prefix;
        self.now.prefix = 0;
    }

    fn end_run(&mut self) {
        self.open -= self.now.prefix + self.now.right;
        let (end, before) = (self.now.end, self.now.before.max(self.now.depth()));
        self.now = Level { end, before, ..Level::default() };
    }

    fn push(&mut self, end: TokenKind, link: bool) {
        self.now.links += usize::from(link);
        self.around.push(std::mem::replace(&mut self.now, Level { end: Some(end), ..Level::default() }));
    }

    fn pop(&mut self) {
        self.end_run();
        let inner = self.now.before + 1;
        self.now = self.around.pop().unwrap_or_default();
        self.now.inner = self.now.inner.max(inner);
    }
}

/// Whether an operand may end with a token.
fn is_operand(token: TokenKind) -> bool {
    use TokenKind as T;
    matches!(
        token,
        T::Name
            | T::Int
            | T::Float
            | T::Complex
            | T::String
            | T::FStringEnd
            | T::TStringEnd
            | T::Rpar
            | T::Rsqb
            | T::Rbrace
            | T::Ellipsis
            | T::True
            | T::False
            | T::None
            | T::Match
            | T::Case
            | T::Type
    )
}

/// Whether an operand grows with a token into another one that holds it.
fn is_link(token: TokenKind) -> bool {
    use TokenKind as T;
    matches!(
        token,
        T::Dot
            | T::Plus
            | T::Minus
            | T::Star
            | T::Slash
            | T::DoubleSlash
            | T::Percent
            | T::At
            | T::Vbar
            | T::Amper
            | T::CircumFlex
            | T::LeftShift
            | T::RightShift
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, deep: bool) {
        let shown: String = text.chars().take(60).collect();
        assert_eq!(too_deep(text, PySourceType::Python), deep, "{shown}");
    }

    #[test]
    fn what_people_write_is_not_deep() {
        for line in [
            "x = [-a.b ** -c, not d, lambda e, f=-1: e if f else e, *g]\n",
            "if a:\n    b()\nelse:\n    c = f'{a!r:>{b}} {{}} {f\"{c}\"}'\n",
            "for a in b:\n    c\nelse: d = e is not f and g not in h\n",
            "match a:\n    case [b, *c] | {'d': -1, **e}: match.type = case\n",
        ] {
            check(&line.repeat(3000), false);
        }
        check(
            &format!("x = [{}]\n", "-1, lambda a, b: a if a else b, f(x) ** 2, {}, ".repeat(20_000)),
            false,
        );
        check(&format!("x = {}1\n", "-a.b(1) and ".repeat(2000)), false);
        check(&format!("x = {}1\n", "f(a) + ".repeat(2000)), false);
    }

    #[test]
    fn nesting_is_seen_however_it_is_written() {
        let many = 100_000;
        for part in [
            "(",
            "[",
            "{",
            "f(",
            "x[",
            "-",
            "not ",
            "~",
            "await ",
            "lambda: ",
            "lambda a, b=1: ",
            "1 ** ",
            "1 if 1 else ",
            "-1 ** -",
            "f'{",
            "[)",
            "(]",
            "x.y(",
            "- (",
            "*",
            "yield ",
            "(x for x in ",
            "{1: ",
            "f'{x:{",
        ] {
            check(&format!("x = {}", part.repeat(many)), true);
        }
        for part in [".y", "()", "[0]", " + 1", ".y(1)", " @ y", "(f)"] {
            check(&format!("x = a{}\n", part.repeat(many)), true);
        }
        let blocks: Vec<String> = (0..500).map(|at| format!("{}if x:\n", " ".repeat(at))).collect();
        check(&blocks.concat(), true);
    }

    #[test]
    fn chains_in_brackets_add_up() {
        let chain = ".y".repeat(4000);
        check(&format!("x = ({}a{}\n", "(".repeat(300), format!("{chain})").repeat(300)), true);
        check(&format!("x = [{}]\n", format!("a{chain}, ").repeat(300)), false);
    }
}
