//! Small questions about the tokens of a Rust source.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The position after an attribute. If the attribute marks test code, the position after the item it marks.
pub(crate) fn after_attribute(tokens: &[TokenTree], at: usize) -> usize {
    let Some(TokenTree::Group(attribute)) = tokens.get(at + 1) else {
        // `#![...]`
        return at + if is_mark(tokens, at + 1, '!') { 3 } else { 1 };
    };
    if !is_for_tests(&attribute.stream()) {
        return at + 2;
    }
    let body =
        |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let length = tokens[at..].iter().position(|token| is_the(token, ';') || body(token));
    length.map_or(tokens.len(), |length| at + length + 1)
}

fn is_for_tests(attribute: &TokenStream) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "test" || text.starts_with("cfg(test") || text.starts_with("cfg(all(test")
}

/// Whether a token is this punctuation mark.
pub(crate) fn is_the(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Whether there is a token at a position and it is this punctuation mark.
pub(crate) fn is_mark(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    tokens.get(at).is_some_and(|token| is_the(token, mark))
}
