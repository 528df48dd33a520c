//! What one file of Rust declares, imports and names.
//!
//! Reads tokens, so that comments and strings are left out, and leaves out what is compiled for tests alone.

use std::collections::BTreeSet;
use std::str::FromStr;

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

use crate::tokens::{after_attribute, is_mark, is_the};

/// One module, as written in its source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Modules that it declares: `mod name;`, or with what is between the braces.
    pub children: Vec<(String, Option<Self>)>,
    /// Functions, types, constants and macros that it defines.
    pub items: BTreeSet<String>,
    /// What `use` brings in.
    pub imports: Vec<Import>,
    /// Paths of two names and more outside of `use`.
    pub paths: Vec<Path>,
    /// Types that stand alone, and functions that are called, without a path.
    pub bare: BTreeSet<String>,
}

/// One name, or all names, that a `use` brings in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The name here; `None` for `*`.
    pub name: Option<String>,
    pub path: Path,
    /// Whether others may import it from here: `pub use`.
    pub reexport: bool,
}

/// A path and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub names: Vec<String>,
    pub line: usize,
}

/// Reads the source of a module.
///
/// # Errors
/// If it is no Rust.
pub(crate) fn scan(text: &str) -> Result<Scanned, LexError> {
    let tokens: Vec<_> = TokenStream::from_str(text)?.into_iter().collect();
    let mut scanned = Scanned::default();
    scanned.read(&tokens, true);
    Ok(scanned)
}

impl Scanned {
    /// Reads tokens of one level; `top` where they are the module's own.
    fn read(&mut self, tokens: &[TokenTree], top: bool) {
        let mut at = 0;
        while at < tokens.len() {
            at = self.step(tokens, at, top);
        }
    }

    /// Reads what begins at a token, and returns the position after it.
    fn step(&mut self, tokens: &[TokenTree], at: usize, top: bool) -> usize {
        match &tokens[at] {
            TokenTree::Punct(mark) if mark.as_char() == '#' => after_attribute(tokens, at),
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                if name_at(&inner, 0) != Some("in".into()) {
                    self.read(&inner, false);
                }
                at + 1
            }
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "use" if !is_mark(tokens, at + 1, '<') => self.import(tokens, at),
                "mod" if name_at(tokens, at + 1).is_some() => self.child(tokens, at),
                keyword if top && DEFINES.contains(&keyword) => {
                    self.items.extend(name_at(tokens, at + 1));
                    at + 1
                }
                "macro_rules" if top => {
                    self.items.extend(name_at(tokens, at + 2));
                    at + 1
                }
                _ => self.name(tokens, at),
            },
            _ => at + 1,
        }
    }

    /// Reads `mod name;` or `mod name { ... }`.
    fn child(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let name = name_at(tokens, at + 1).unwrap_or_default();
        let inner = match tokens.get(at + 2) {
            Some(TokenTree::Group(group)) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let mut scanned = Self::default();
                scanned.read(&inner, true);
                Some(scanned)
            }
            _ => None,
        };
        self.children.push((name, inner));
        at + 3
    }

    /// Reads `use ...;`.
    fn import(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let length = tokens[at..].iter().position(|token| is_the(token, ';')).unwrap_or(tokens.len() - at);
        let end = at + length;
        let reexport =
            at > 0 && (is_word(&tokens[at - 1], "pub") || at > 1 && is_word(&tokens[at - 2], "pub"));
        let line = tokens[at].span().start().line;
        for (name, names) in use_tree(&tokens[at + 1..end], &[]) {
            self.imports.push(Import { name, path: Path { names, line }, reexport });
        }
        end + 1
    }

    /// Reads a name, and the path that it begins.
    fn name(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let mut names = Vec::new();
        let mut next = at;
        while let Some(name) = name_at(tokens, next) {
            names.push(name);
            next += 1;
            if !(is_mark(tokens, next, ':') && is_mark(tokens, next + 1, ':')) {
                break;
            }
            next += 2;
        }
        let alone = at == 0
            || !(is_the(&tokens[at - 1], '.') || is_the(&tokens[at - 1], ':') && after_path(tokens, at));
        if !alone {
            return next;
        }
        if names.len() > 1 {
            let line = tokens[at].span().start().line;
            self.paths.push(Path { names, line });
        } else if let Some(name) = names.pop() {
            let called = matches!(tokens.get(next), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
            if called || name.starts_with(char::is_uppercase) {
                self.bare.insert(name);
            }
        }
        next
    }
}

/// Keywords whose next word is the name of what they define.
const DEFINES: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// The names that a `use` brings in, with their paths.
fn use_tree(tokens: &[TokenTree], before: &[String]) -> Vec<(Option<String>, Vec<String>)> {
    let mut path = before.to_vec();
    let mut renamed = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                return inner
                    .split(|token| is_the(token, ','))
                    .flat_map(|tree| use_tree(tree, &path))
                    .collect();
            }
            TokenTree::Ident(word) if *word == "as" => {
                renamed = name_at(tokens, at + 1);
                at += 1;
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            token if is_the(token, '*') => return vec![(None, path)],
            _ => {}
        }
        at += 1;
    }
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned().filter(|_| path.len() > before.len() || !tokens.is_empty()) else {
        return Vec::new();
    };
    vec![(Some(renamed.unwrap_or(last)), path)]
}

fn name_at(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

/// Whether the colon before a token is the second of `::`.
fn after_path(tokens: &[TokenTree], at: usize) -> bool {
    at > 1 && is_the(&tokens[at - 2], ':')
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check(text: &str, imports: &[&str], paths: &[&str]) {
        let scanned = scan(text).unwrap();
        let imported = |import: &Import| {
            let name = import.name.clone().unwrap_or_else(|| "*".into());
            let word = if import.reexport { "gives" } else { "uses" };
            format!("{word} {} as {name}", import.path.names.join("::"))
        };
        assert_eq!(scanned.imports.iter().map(imported).collect::<Vec<_>>(), imports, "{text}");
        let found: Vec<_> = scanned.paths.iter().map(|path| path.names.join("::")).collect();
        assert_eq!(found, paths, "{text}");
    }

    #[test]
    fn every_name_of_a_use_is_an_import() {
        check("use crate::a::b;", &["uses crate::a::b as b"], &[]);
        check(
            "use super::{a, b::{self, c as d}};",
            &["uses super::a as a", "uses super::b as b", "uses super::b::c as d"],
            &[],
        );
        check("fn f() { use crate::a::*; }", &["uses crate::a as *"], &[]);
        check("pub use a::b; pub(crate) use c::d;", &["gives a::b as b", "gives c::d as d"], &[]);
    }

    #[test]
    fn paths_are_read_wherever_they_stand() {
        check("fn f() -> crate::a::B { vec![c::d::<u8>()] }", &[], &["crate::a::B", "c::d"]);
        check("pub(in crate::a) fn f() {}", &[], &[]);
        check("fn f() { x.y::<z::Z>() }", &[], &["z::Z"]);
    }

    #[test]
    fn comments_strings_and_tests_are_left_out() {
        check("// crate::a::b\nconst A: &str = \"crate::a::b\";", &[], &[]);
        check("/// crate::a::b\nfn f() {}", &[], &[]);
        check("#[cfg(test)] mod tests { use crate::a; } use crate::b;", &["uses crate::b as b"], &[]);
        check("#[cfg(test)] use crate::a; use crate::b;", &["uses crate::b as b"], &[]);
        check("#[cfg(not(test))] use crate::a;", &["uses crate::a as a"], &[]);
    }
}
