//! What a pickle of plain data becomes, and what can be wrong with one.

/// Makes items of what a pickle contains.
pub(crate) trait Build {
    /// What it makes: small, and free to copy.
    type Item: Copy;

    fn none(&mut self) -> Self::Item;
    fn boolean(&mut self, value: bool) -> Self::Item;
    fn integer(&mut self, value: i64) -> Self::Item;
    fn float(&mut self, value: f64) -> Self::Item;
    fn text(&mut self, value: &str) -> Self::Item;
    /// A list or a tuple.
    fn list(&mut self, items: Vec<Self::Item>) -> Self::Item;
    fn dict(&mut self, entries: Vec<(Self::Item, Self::Item)>) -> Self::Item;
}

/// Why a pickle cannot be read, and where.
#[derive(Debug, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
pub struct PickleError {
    /// Bytes before the instruction that cannot be read.
    pub offset: u64,
    /// What is wrong there.
    #[source]
    pub problem: PickleProblem,
}

/// What is wrong with a pickle.
#[derive(Debug, thiserror::Error)]
pub enum PickleProblem {
    /// It has another beginning.
    #[error("this is no pickle of a binary protocol")]
    NoPickle,
    /// The file ends.
    #[error("the file ends in the middle of the pickle")]
    Truncated,
    /// An instruction that looks up or calls something.
    #[error("the pickle calls code (instruction {0}), which a snapshot never does: nothing of it was run")]
    Forbidden(&'static str),
    /// An instruction that there is not, or that no pickle of plain data has.
    #[error("{0:#04x} is no instruction of plain data")]
    Unknown(u8),
    /// Instructions that contradict each other.
    #[error("the pickle is damaged: {0}")]
    Damaged(&'static str),
    /// More than is read.
    #[error("the file has more than 4 GB")]
    TooLarge,
    /// Its values need more memory than is taken.
    #[error("the values of the pickle need more than 1.5 GB of memory")]
    TooMuch,
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Read(#[source] std::io::Error),
}
