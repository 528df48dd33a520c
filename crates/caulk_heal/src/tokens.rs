//! A line of output as numbers and the text between them.

/// One piece of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    /// A number that stands for itself, with its value.
    Number { text: &'a str, value: f64 },
    /// A number with a unit of time behind it, or a part of a time of day: two equal runs differ in it.
    Time,
    /// Anything else, up to the next number or blank.
    Text(&'a str),
}

/// Units of time and of speed.
const UNITS: [&str; 14] = [
    "s",
    "ms",
    "us",
    "ns",
    "sec",
    "secs",
    "second",
    "seconds",
    "min",
    "mins",
    "it/s",
    "s/it",
    "ex/s",
    "samples/s",
];

/// The pieces of a line. What a program overwrote by a carriage return is no part of it.
pub(crate) fn tokens(line: &str) -> Vec<Token<'_>> {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or(line);
    let mut tokens = Vec::new();
    for word in line.split_whitespace() {
        let alone = tokens.len();
        if UNITS.contains(&word.trim_end_matches([',', ';', ')', ']', '.'])) && !tokens.is_empty() {
            make_time(&mut tokens[alone - 1]);
        }
        pieces(word, &mut tokens);
    }
    tokens
}

fn pieces<'a>(word: &'a str, tokens: &mut Vec<Token<'a>>) {
    let mut rest = word;
    let mut text_from = word;
    while !rest.is_empty() {
        let begins = word.len() == rest.len() || !ends_in_name(&word[..word.len() - rest.len()]);
        let length = if begins { number_length(rest) } else { 0 };
        let Some(value) = rest[..length].parse::<f64>().ok().filter(|_| length > 0) else {
            rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
            continue;
        };
        let text = &text_from[..text_from.len() - rest.len()];
        if !text.is_empty() {
            tokens.push(Token::Text(text));
        }
        let number = &rest[..length];
        rest = &rest[length..];
        let unit: String = rest.chars().take_while(|c| c.is_alphabetic() || *c == '/').collect();
        let clock = |text: &str| text.starts_with(':') && text[1..].starts_with(|c: char| c.is_ascii_digit());
        let time = UNITS.contains(&unit.as_str()) || clock(rest) || text == ":" && after_clock(tokens);
        tokens.push(if time { Token::Time } else { Token::Number { text: number, value } });
        text_from = rest;
    }
    if !text_from.is_empty() {
        tokens.push(Token::Text(text_from));
    }
}

/// `12:30`: the part before this colon was one of a time.
fn after_clock(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [.., Token::Time, Token::Text(":")])
}

/// A digit behind a letter belongs to a name: `layer1`.
fn ends_in_name(before: &str) -> bool {
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn make_time(token: &mut Token<'_>) {
    if matches!(token, Token::Number { .. }) {
        *token = Token::Time;
    }
}

/// Length of the number at the start: `-1.5e-3`, `nan`, `inf`. 0 if there is none.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    for word in ["nan", "inf"] {
        let end = sign + word.len();
        if text.get(sign..end) == Some(word) && !text[end..].starts_with(char::is_alphanumeric) {
            return end;
        }
    }
    let digits =
        |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let shown: Vec<String> = tokens(line)
            .iter()
            .map(|token| match token {
                Token::Number { text, .. } => format!("#{text}"),
                Token::Time => "@".into(),
                Token::Text(text) => (*text).to_owned(),
            })
            .collect();
        assert_eq!(shown.join(" "), expected, "{line}");
    }

    #[test]
    fn numbers_stand_apart_from_text() {
        check("epoch 1: loss 0.0312, IoU -1.5e-3", "epoch #1 : loss #0.0312 , IoU #-1.5e-3");
        check("layer1.weight x=3 nan", "layer1.weight x= #3 #nan");
        check("[2/8] acc=97%", "[ #2 / #8 ] acc= #97 %");
        check("", "");
    }

    #[test]
    fn times_are_no_results() {
        check("took 1.5s, 3 it/s and 20 ms", "took @ s, @ it/s and @ ms");
        check("12:30:05 done", "@ : @ : @ done");
        check("50%\r100%", "#100 %");
    }
}
