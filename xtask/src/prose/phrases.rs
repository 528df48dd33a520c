//! Finds phrases in a text. Code is no prose: fenced blocks, spans in backticks and `{placeholders}` are left out.

/// How many words a gap of a phrase spans at most.
const WIDEST_GAP: usize = 5;

/// What stands in the list of words for code.
const CODE: &str = "`";

/// What stands in the list of words for the end of a sentence.
const END: &str = "";

/// The words of a text in lower case, with a mark at the end of each sentence.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for paragraph in without_blocks(text).split("\n\n") {
        for (at, span) in paragraph.split('`').enumerate() {
            if at % 2 == 0 { read(span, &mut words) } else { words.push(CODE.to_owned()) }
        }
        words.push(END.to_owned());
    }
    words
}

/// The text without fenced blocks; a list item, a heading and a row of a table are paragraphs.
fn without_blocks(text: &str) -> String {
    let mut kept = String::new();
    let mut fenced = false;
    for line in text.lines() {
        let start = line.trim_start();
        let fence = start.starts_with("```");
        if fence || start.starts_with(['-', '#', '|', '*']) {
            kept.push('\n');
        }
        if !fence && !fenced {
            kept.push_str(line);
        }
        kept.push('\n');
        fenced ^= fence;
    }
    kept
}

fn read(text: &str, words: &mut Vec<String>) {
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_alphanumeric() || ".:;!?|{".contains(letter)) {
        rest = &rest[start..];
        if let Some((_, after)) = rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            words.push(CODE.to_owned());
            rest = after;
            continue;
        }
        let inside = |letter: char| letter.is_alphanumeric() || "'’-_".contains(letter);
        let length = rest.find(|letter| !inside(letter)).unwrap_or(rest.len());
        words.push(rest[..length].to_lowercase());
        // A mark, which is one byte, gives an empty word: the end of a sentence.
        rest = &rest[length.max(1)..];
    }
}

/// How often a phrase is in a list of words.
pub(crate) fn count(words: &[String], phrase: &str) -> usize {
    let parts: Vec<_> = phrase.split(' ').collect();
    (0..words.len()).filter(|at| begins(&words[*at..], &parts)).count()
}

fn begins(words: &[String], parts: &[&str]) -> bool {
    match parts {
        [] => true,
        ["...", rest @ ..] => {
            let gap = words.iter().take(WIDEST_GAP).take_while(|word| *word != END).count();
            (1..=gap).any(|length| begins(&words[length..], rest))
        }
        [part, rest @ ..] => {
            let is_first = |word: &String| part.split('|').any(|form| form == word);
            words.first().is_some_and(is_first) && begins(&words[1..], rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, phrase: &str, expected: usize) {
        assert_eq!(count(&words(text), phrase), expected, "{phrase} in {text}");
    }

    #[test]
    fn a_word_counts_in_every_form_and_case() {
        check("Tells, tell and retell; telling-off.", "tell|tells|telling", 2);
        check("it is said\nthat", "said that", 1);
    }

    #[test]
    fn a_gap_stays_within_a_sentence() {
        check("what a line makes that stays", "what ... that", 1);
        check("what `a` {b} that", "what ... that", 1);
        check("Report what is left. See that it is.", "what ... that", 0);
        check("what one two three four five six that", "what ... that", 0);
        check("- what is left\n- that is all", "what ... that", 0);
    }

    #[test]
    fn code_is_no_prose() {
        check("`told` and told", "told", 1);
        check("a\n```text\ntold\n```\ntold", "told", 1);
        check("{told} was told", "told", 1);
    }
}
