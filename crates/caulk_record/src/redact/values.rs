//! Where a secret ends in a text whose language nobody knows: shell, Python, JSON, YAML, a header.
//!
//! Brackets and quotes are taken as a whole. In doubt, too much is hidden.

/// The part of a text that is hidden.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Bytes before it that stay: an opening quote.
    pub(super) before: usize,
    /// Its own bytes.
    pub(super) length: usize,
}

/// The value that `text` begins with. `enclosing`: the quote in which the text itself stands.
pub(super) fn value(text: &str, enclosing: Option<char>) -> Span {
    // JSON in a string: `\"x\"`.
    for escaped in ["\\\"", "\\'"] {
        if let Some(inside) = text.strip_prefix(escaped) {
            let length = inside.find(escaped).unwrap_or(inside.len());
            return Span { before: escaped.len(), length };
        }
    }
    let Some(quote) = text.chars().next().filter(|c| is_quote(*c) && Some(*c) != enclosing) else {
        return Span { before: 0, length: bare(text, enclosing) };
    };
    let inside = &text[1..];
    let Some(length) = closing(inside, quote) else {
        return Span { before: 1, length: inside.len() };
    };
    let after = inside[length + 1..].chars().next();
    if after.is_none_or(|c| is_end(c) || is_quote(c) || ":]})".contains(c)) {
        return Span { before: 1, length };
    }
    // `'a'b'c d'`: one word of a shell.
    Span { before: 0, length: bare(text, enclosing) }
}

/// The rest of the line, or of the string in which it stands: what follows the name of a header.
pub(super) fn line(text: &str, enclosing: Option<char>) -> Span {
    let length = text.find(|c: char| c == '\n' || Some(c) == enclosing).unwrap_or(text.len());
    Span { before: 0, length }
}

/// Length of a value that has no quotes around it.
fn bare(text: &str, enclosing: Option<char>) -> usize {
    let mut depth = 0_usize;
    let mut skip = 0;
    for (at, c) in text.char_indices() {
        if at < skip {
            continue;
        }
        match c {
            '\\' => skip = at + 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            _ if Some(c) == enclosing => return at,
            // One without its other half is a letter.
            '"' | '\'' => skip = closing(&text[at + 1..], c).map_or(0, |length| at + length + 2),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            _ if depth == 0 && is_end(c) => return at,
            _ => (),
        }
    }
    text.len()
}

/// Where the string ends that began before this text. What a shell puts in (`$(...)`) has quotes of its own.
fn closing(text: &str, quote: char) -> Option<usize> {
    let (mut escaped, mut before, mut depth) = (false, ' ', 0_usize);
    text.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !escaped && depth == 0;
        match c {
            '(' if quote == '"' && (before == '$' || depth > 0) => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        escaped = c == '\\' && !escaped;
        before = c;
        ends.then_some(at)
    })
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || "&;,|".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, hidden: &str) {
        let Span { before, length } = value(text, None);
        assert_eq!(&text[before..before + length], hidden, "{text}");
    }

    #[test]
    fn a_value_ends_with_its_word_its_quotes_or_its_brackets() {
        check("x y", "x");
        check("x,y", "x");
        check("x)", "x");
        check("a\\ b c", "a\\ b");
        check("'a b' c", "a b");
        check(r#""a\"b" c"#, r#"a\"b"#);
        check(r#"\"a b\"}"#, "a b");
        check("'a'b'c d' e", "'a'b'c d'");
        check("a' b'c d", "a' b'c");
        check("f(\"a\", 'b c') d", "f(\"a\", 'b c')");
        check("{user: [a, b], x: {y}} z", "{user: [a, b], x: {y}}");
        check("{a, b", "{a, b");
        check("don't x", "don't");
        check("'a b", "a b");
        check(r#""$(get "a b")" c"#, r#"$(get "a b")"#);
        check("", "");
    }

    #[test]
    fn the_string_around_it_ends_it() {
        assert_eq!(value("x\" y", Some('"')), Span { before: 0, length: 1 });
        assert_eq!(value("\"", Some('"')), Span { before: 0, length: 0 });
        assert_eq!(line("a; b' c", Some('\'')), Span { before: 0, length: 4 });
        assert_eq!(line("a; b\nc", None), Span { before: 0, length: 4 });
    }
}
