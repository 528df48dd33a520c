//! `--resume-cmd`: the command that goes on from a checkpoint. Split into words as a shell would, never run by one.

/// Stands for the path of the checkpoint.
const PLACEHOLDER: &str = "{checkpoint}";

/// The command of the next life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    words: Vec<String>,
}

/// Why a template cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// Nothing in it.
    #[error("the command to resume with is empty")]
    Empty,
    /// A quote is opened and not closed.
    #[error("a quote ({0}) is not closed")]
    Quote(char),
    /// A backslash ends it.
    #[error("a backslash at the end escapes nothing")]
    Escape,
    /// What a shell would understand.
    #[error(
        "`{0}` is for a shell, and none is used\nhint: put it in quotes if it is an argument, or write a script"
    )]
    Shell(char),
}

impl Resume {
    /// Splits a template: blanks separate words, quotes and backslashes keep them together.
    ///
    /// # Errors
    /// [`ResumeError`] if a shell would not take it as one plain command.
    pub fn parse(text: &str) -> Result<Self, ResumeError> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut quote = None;
        let mut all = text.chars();
        while let Some(c) = all.next() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None | Some('"'), '\\') => {
                    word.get_or_insert_default().push(all.next().ok_or(ResumeError::Escape)?);
                }
                (None, '\'' | '"') => {
                    word.get_or_insert_default();
                    quote = Some(c);
                }
                (None, '|' | '&' | ';' | '<' | '>' | '`' | '\n') => return Err(ResumeError::Shell(c)),
                (None, c) if c.is_whitespace() => words.extend(word.take()),
                (_, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        match quote {
            Some(open) => Err(ResumeError::Quote(open)),
            None if words.is_empty() => Err(ResumeError::Empty),
            None => Ok(Self { words }),
        }
    }

    /// Whether it needs a checkpoint.
    pub fn needs_checkpoint(&self) -> bool {
        self.words.iter().any(|word| word.contains(PLACEHOLDER))
    }

    /// The words, with the checkpoint's path in its places; `None` where one is needed and there is none.
    pub fn words(&self, checkpoint: Option<&str>) -> Option<Vec<String>> {
        if self.needs_checkpoint() && checkpoint.is_none() {
            return None;
        }
        let path = checkpoint.unwrap_or_default();
        Some(self.words.iter().map(|word| word.replace(PLACEHOLDER, path)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, checkpoint: Option<&str>, expected: Option<&[&str]>) {
        let words = Resume::parse(text).map(|resume| resume.words(checkpoint));
        let expected = expected.map(|words| words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(words, Ok(expected), "{text}");
    }

    #[test]
    fn words_are_split_as_by_a_shell() {
        check("python train.py  --epochs 3", None, Some(&["python", "train.py", "--epochs", "3"]));
        check(r#"a 'b c' "d e"f \ g '' "\"""#, None, Some(&["a", "b c", "d ef", " g", "", "\""]));
        check("python 'a;b' \"x|y\"", None, Some(&["python", "a;b", "x|y"]));
    }

    #[test]
    fn the_checkpoint_stands_wherever_it_is_named() {
        let words = ["t", "--resume=/c p.pt", "/c p.pt"];
        check("t --resume={checkpoint} {checkpoint}", Some("/c p.pt"), Some(&words));
        check("t --resume {checkpoint}", None, None);
        check("t --auto-resume", None, Some(&["t", "--auto-resume"]));
    }

    #[test]
    fn what_is_no_plain_command_is_refused() {
        let check = |text: &str, expected: ResumeError| {
            assert_eq!(Resume::parse(text), Err(expected), "{text}");
        };
        check("", ResumeError::Empty);
        check("  ", ResumeError::Empty);
        check("python 'train.py", ResumeError::Quote('\''));
        check("python \"train.py --x", ResumeError::Quote('"'));
        check("python train.py \\", ResumeError::Escape);
        check("cd x && python train.py", ResumeError::Shell('&'));
        check("python train.py > log", ResumeError::Shell('>'));
    }
}
