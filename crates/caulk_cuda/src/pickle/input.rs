//! Bytes of a file in order, and how many there were.

use std::io::{BufRead, ErrorKind, Read as _};

use super::plain::PickleProblem;

/// Bytes that are read at most.
const MOST: u64 = 4 << 30;

/// A reader that counts.
pub(super) struct Input<R> {
    reader: R,
    offset: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, offset: 0, text: Vec::new() }
    }

    /// Bytes so far.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn byte(&mut self) -> Result<u8, PickleProblem> {
        let first = loop {
            match self.reader.fill_buf() {
                Ok(buffer) => break buffer.first().copied(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(PickleProblem::Read(error)),
            }
        };
        let byte = first.ok_or(PickleProblem::Truncated)?;
        self.reader.consume(1);
        self.count(1)?;
        Ok(byte)
    }

    /// So many bytes as a number, the lowest first.
    pub(super) fn number<const N: usize>(&mut self) -> Result<u64, PickleProblem> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes[..N]).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => PickleProblem::Truncated,
            _ => PickleProblem::Read(error),
        })?;
        self.count(N as u64)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// So many bytes. A length that the file does not have takes no memory.
    pub(super) fn bytes(&mut self, length: u64) -> Result<&[u8], PickleProblem> {
        self.count(length)?;
        self.text.clear();
        let read =
            self.reader.by_ref().take(length).read_to_end(&mut self.text).map_err(PickleProblem::Read)?;
        if (read as u64) < length {
            return Err(PickleProblem::Truncated);
        }
        Ok(&self.text)
    }

    fn count(&mut self, bytes: u64) -> Result<(), PickleProblem> {
        self.offset = self.offset.saturating_add(bytes);
        if self.offset > MOST { Err(PickleProblem::TooLarge) } else { Ok(()) }
    }
}
