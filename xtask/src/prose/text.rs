//! The English of a source file: doc comments, docstrings and strings that people may read.
//!
//! A string counts if it has a space in it. Ordinary comments and what is compiled for tests alone are left out.

use std::str::FromStr;

use proc_macro2::{LexError, TokenStream, TokenTree};

use crate::tokens::{after_attribute, is_mark};

/// The texts of a Rust source.
///
/// # Errors
/// If it is no Rust.
pub(crate) fn of_rust(source: &str) -> Result<Vec<String>, LexError> {
    let mut texts = Vec::new();
    read_rust(TokenStream::from_str(source)?, &mut texts);
    Ok(texts)
}

fn read_rust(stream: TokenStream, texts: &mut Vec<String>) {
    let tokens: Vec<_> = stream.into_iter().collect();
    let mut docs = String::new();
    let mut at = 0;
    while at < tokens.len() {
        let next = if is_mark(&tokens, at, '#') { after_attribute(&tokens, at) } else { at + 1 };
        let skipped = next > at + 3;
        match &tokens[next.min(tokens.len()) - 1] {
            _ if skipped => {}
            TokenTree::Group(group) => match doc_line(group.stream()) {
                Some(line) => docs.extend([line.as_str(), "\n"]),
                None => read_rust(group.stream(), texts),
            },
            TokenTree::Literal(literal) => {
                texts.extend(value(&literal.to_string()).filter(|text| is_readable(text)));
            }
            _ => {}
        }
        // Doc comments of one item follow each other: the text ends where something else begins.
        if !docs.is_empty() && !is_mark(&tokens, next, '#') {
            texts.push(std::mem::take(&mut docs));
        }
        at = next;
    }
}

/// The text of `doc = "..."`.
fn doc_line(attribute: TokenStream) -> Option<String> {
    let tokens: Vec<_> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(text)] if *name == "doc" => {
            value(&text.to_string())
        }
        _ => None,
    }
}

/// The value of a string literal, with escapes that matter for words.
fn value(literal: &str) -> Option<String> {
    let raw = literal.starts_with('r');
    if !raw && !literal.starts_with('"') {
        return None;
    }
    let inner = literal.get(literal.find('"')? + 1..literal.rfind('"')?)?;
    Some(if raw { inner.to_owned() } else { unescaped(inner) })
}

fn unescaped(text: &str) -> String {
    let mut value = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '\\' { letters.next() } else { None }) {
            ('\\', Some('\n')) => while letters.next_if(|next| next.is_whitespace()).is_some() {},
            ('\\', Some('n' | 't' | 'r')) => value.push('\n'),
            ('\\', Some(escaped)) => value.push(escaped),
            _ => value.push(letter),
        }
    }
    value
}

fn is_readable(text: &str) -> bool {
    text.trim().contains(' ')
}

/// The texts of a Python source.
pub(crate) fn of_python(source: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['#', '"', '\'']) {
        rest = &rest[at..];
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let quote =
            if rest.starts_with("\"\"\"") || rest.starts_with("'''") { &rest[..3] } else { &rest[..1] };
        let inner = &rest[quote.len()..];
        let end = end_of_string(inner, quote);
        texts.push(unescaped(&inner[..end]));
        rest = inner.get(end + quote.len()..).unwrap_or("");
    }
    texts.retain(|text| is_readable(text));
    texts
}

/// The length of a string up to the quote that closes it.
fn end_of_string(text: &str, quote: &str) -> usize {
    let mut at = 0;
    while at < text.len() && !text[at..].starts_with(quote) {
        let letters = if text[at..].starts_with('\\') { 2 } else { 1 };
        at += text[at..].chars().take(letters).map(char::len_utf8).sum::<usize>();
    }
    at
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check_rust(source: &str, expected: &[&str]) {
        assert_eq!(of_rust(source).unwrap(), expected, "{source}");
    }

    #[test]
    fn doc_comments_of_an_item_are_one_text() {
        check_rust("//! A file.\n\n/// One.\n/// Two.\nfn f() {}", &[" A file.\n One.\n Two.\n"]);
        check_rust("struct S {\n/// One.\na: u8,\n/// Two.\nb: u8 }", &[" One.\n", " Two.\n"]);
    }

    #[test]
    fn strings_with_a_space_are_texts() {
        check_rust("#[error(\"no `{a}`\")] const A: &str = \"one\";", &["no `{a}`"]);
        check_rust("const A: &str = \"a \\\n   b\\nc \\\"d\\\"\";", &["a b\nc \"d\""]);
        check_rust("const A: &str = r#\"a \"b\"\"#; const B: &[u8] = b\"a b\";", &["a \"b\""]);
    }

    #[test]
    fn comments_and_tests_are_left_out() {
        check_rust("// a b\nfn f() {}", &[]);
        check_rust("#[cfg(test)] mod tests { const A: &str = \"a b\"; }", &[]);
    }

    #[test]
    fn docstrings_and_strings_of_python_are_texts() {
        let source = "'''A file.'''\n# not \"this one\"\na = f\"one {x}\" + 'it\\'s two' + ''\nb = 'one'\n";
        assert_eq!(of_python(source), ["A file.", "one {x}", "it's two"]);
    }
}
