//! Python that nobody would write: sound programs, mangled by seeded chance. Equal seeds give equal programs.

const PIECES: [&str; 48] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "\n",
    "\t",
    "    ",
    "'",
    "\"\"\"",
    "f'{",
    "\\",
    "\\\n",
    "\0",
    "é",
    "\u{feff}",
    "\r",
    "lambda: ",
    " if ",
    " for x in xs",
    "=",
    ":=",
    "+=",
    ".",
    "*",
    "**",
    "@",
    "->",
    ";",
    "#",
    "0x",
    "def f(",
    "class C(",
    "async ",
    "await ",
    "yield ",
    "match x:\n",
    "case _:\n",
    "with a as b:\n",
    "try:\n",
    "global x\n",
    "self.",
    "del ",
    "return ",
    "import ",
];

/// A small generator of numbers.
pub(crate) struct Mangler(u64);

impl Mangler {
    /// Every seed gives another sequence.
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring sequences, and zero none at all.
        let mut mangler = Self((seed ^ 0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            mangler.below(2);
        }
        mangler
    }

    /// A number below a bound, zero where there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> Option<&'a T> {
        from.get(self.below(from.len())).copied()
    }

    /// A mangled program.
    pub(crate) fn program(&mut self, corpus: &[&str]) -> String {
        let mut text = self.pick(corpus).unwrap_or_default().to_owned();
        for _ in 0..self.below(9) {
            text = match self.below(9) {
                0 => self.truncated(&text),
                1 => self.spliced(&text),
                2 => self.with_bytes(&text),
                3 => self.renamed(&text),
                4 => self.nested(&text),
                5 => self.with_part_of(&text, corpus),
                _ => self.with_lines_moved(&text),
            };
        }
        text
    }

    fn position(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    fn range(&mut self, text: &str) -> std::ops::Range<usize> {
        let (a, b) = (self.position(text), self.position(text));
        a.min(b)..a.max(b)
    }

    fn truncated(&mut self, text: &str) -> String {
        let range = self.range(text);
        text[range].to_owned()
    }

    fn spliced(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..=self.below(4) {
            let at = self.position(&text);
            text.insert_str(at, PIECES[self.below(PIECES.len())]);
        }
        text
    }

    fn with_bytes(&mut self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.below(5) {
            let at = self.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = self.below(256) as u8;
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// One name for another: what was a tensor is a class, what was a loop's variable is the list.
    fn renamed(&mut self, text: &str) -> String {
        let names: Vec<_> =
            text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()).collect();
        let (Some(from), Some(to)) = (self.pick(&names), self.pick(&names)) else { return text.to_owned() };
        if self.below(2) == 0 { text.replace(from, to) } else { text.replacen(from, to, 1) }
    }

    /// Everything one block deeper, or a few hundred.
    fn nested(&mut self, text: &str) -> String {
        let heads = ["while x:", "for x in xs:", "def f(x):", "class C:", "with f() as x:", "if x:", "try:"];
        let depth = if self.below(20) == 0 { self.below(90) } else { 1 };
        let head = heads[self.below(heads.len())];
        let heads: Vec<_> = (0..depth).map(|level| format!("{}{head}\n", " ".repeat(level))).collect();
        let body: Vec<_> = text.lines().map(|line| format!("{}{line}\n", " ".repeat(depth))).collect();
        heads.concat() + &body.concat()
    }

    fn with_part_of(&mut self, text: &str, corpus: &[&str]) -> String {
        let other = self.pick(corpus).unwrap_or_default();
        let lines: Vec<_> = other.lines().collect();
        let from = self.below(lines.len());
        let part =
            lines[from..].iter().take(self.below(12)).fold(String::new(), |part, line| part + line + "\n");
        let at = self.line_start(text);
        [&text[..at], &part, &text[at..]].concat()
    }

    fn line_start(&mut self, text: &str) -> usize {
        let at = self.position(text);
        text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Lines dropped, doubled, exchanged, indented otherwise.
    fn with_lines_moved(&mut self, text: &str) -> String {
        let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
        for _ in 0..=self.below(4) {
            let (a, b) = (self.below(lines.len()), self.below(lines.len()));
            if lines.is_empty() {
                break;
            }
            match self.below(5) {
                0 => drop(lines.remove(a)),
                1 => lines.insert(b, lines[a].clone()),
                2 => lines.swap(a, b),
                3 => lines[a].insert_str(0, "    "),
                _ => {
                    let start = lines[a].len() - lines[a].trim_start().len();
                    lines[a].drain(..start);
                }
            }
        }
        lines.concat()
    }
}
