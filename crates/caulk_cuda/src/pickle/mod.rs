//! Pickles of plain data: numbers, texts, lists, tuples and dicts, read as a stream.
//!
//! A pickle is a program for a small machine. Of its instructions these build plain values; those that look up a name or call
//! something ([`PickleProblem::Forbidden`]) are refused, so that nothing of a file can run. A container becomes an item of the
//! caller's ([`Build`]) as soon as it is complete, so that a file is never in memory as a whole.

mod input;
mod machine;
mod plain;

use std::io::BufRead;

use input::Input;
use machine::Machine;
pub(crate) use plain::Build;
pub use plain::{PickleError, PickleProblem};

/// Reads one pickle, whose values may take so many bytes of memory.
///
/// # Errors
/// [`PickleError`] with the offset of the instruction.
pub(crate) fn read<B: Build>(
    reader: impl BufRead,
    build: &mut B,
    memory: u64,
) -> Result<B::Item, PickleError> {
    let mut input = Input::new(reader);
    let mut machine = Machine::new(build, memory);
    loop {
        let offset = input.offset();
        match machine.step(&mut input) {
            Ok(None) => {}
            Ok(Some(item)) => return Ok(item),
            Err(problem) => return Err(PickleError { offset, problem }),
        }
    }
}
