//! The watched words, each with its replacement and the number of uses that are left. The numbers may only fall.

use super::counts::Counts;

/// A word or phrase that `docs/style.md` advises against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    /// Words with a space between them; `|` separates alternatives, `...` stands for up to five words.
    pub phrase: &'static str,
    pub instead: &'static str,
    /// Uses that were there when the word was listed, less those that were rewritten since.
    pub known: Counts,
}

/// Every watched word.
#[rustfmt::skip]
pub(crate) const WORDS: &[Word] = &[
    word("told", "reported, named, shown, measured", [0, 164, 13]),
    word("tell|tells|telling", "report, show, distinguish", [0, 180, 12]),
    word("say|says|saying|said", "print, report, state", [0, 466, 35]),
    word("what ... that", "a noun: `retained allocations of a line`", [0, 96, 5]),
    word("of which", "a sentence of two halves: `holds 5 MB; its graph holds 3 MB`", [0, 63, 2]),
    word("whom|whomever|whoever", "who, anybody", [0, 30, 0]),
    word("blame|blames|blamed", "attribute, assign", [0, 17, 0]),
    word("speak|speaks|spoken", "a plain verb: `is high`, `reports`", [0, 19, 0]),
    word("in vain", "without success", [0, 3, 0]),
    word("amid", "during, in the middle of", [0, 8, 1]),
    word("anew", "again", [0, 58, 5]),
    word("dear|dearer|dearest", "expensive, slow", [0, 11, 0]),
    word("as far as", "if, the part that", [0, 47, 2]),
    word("for want of", "because there is no", [0, 12, 0]),
    word("put down to", "attributed to", [0, 0, 0]),
    word("looked at|into|through|behind", "inspected, searched, measured", [0, 162, 8]),
    word("of its|their own", "its own, their own", [0, 106, 15]),
    word("go|goes|going|went|gone on", "continue", [0, 86, 4]),
];

const fn word(phrase: &'static str, instead: &'static str, [pages, rust, python]: [usize; 3]) -> Word {
    Word { phrase, instead, known: Counts { pages, rust, python } }
}
