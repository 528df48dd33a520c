//! Who may write to a folder at one time: one program for the whole set, or several for the parts of one division.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;

use camino::Utf8Path;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{StoreError, io_error};
use crate::shard::Shard;

/// Held by all that write to the folder, and tells by how many they divide it.
const FOLDER: &str = ".lock";
/// Held for a moment, by whoever comes in or reads all logs and writes what follows from them.
const TURN: &str = ".lock-tables";

/// The right to write to a folder; ends with the program.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
    _shard: Option<File>,
    /// Whether nobody else was there when this one came.
    pub(crate) alone: bool,
}

impl Lock {
    /// Comes in, which only who has the turn may do: else two could find themselves alone.
    ///
    /// # Errors
    /// If others are there who work on the same part, or divide the set otherwise.
    pub(crate) fn take(folder: &Utf8Path, shard: Shard, _turn: &File) -> Result<Self, StoreError> {
        let path = folder.join(FOLDER);
        let mut file = open(&path)?;
        let alone =
            is_free(&file, FlockOperation::NonBlockingLockExclusive).map_err(io_error("lock", &path))?;
        if alone {
            note(&mut file, shard.count).map_err(io_error("write to", &path))?;
        }
        if shard.count == 1 {
            let lock = Self { _folder: file, _shard: None, alone };
            return if alone { Ok(lock) } else { Err(StoreError::Busy(folder.to_owned())) };
        }
        let others_share =
            is_free(&file, FlockOperation::NonBlockingLockShared).map_err(io_error("lock", &path))?;
        let own = open(&folder.join(shard.file(FOLDER, "")))?;
        let is_own =
            is_free(&own, FlockOperation::NonBlockingLockExclusive).map_err(io_error("lock", &path))?;
        let there = noted(&mut file).map_err(io_error("read", &path))?;
        if others_share && there != shard.count {
            return Err(StoreError::Divided { folder: folder.to_owned(), there, here: shard.count });
        }
        if !others_share || !is_own {
            return Err(StoreError::Busy(folder.to_owned()));
        }
        Ok(Self { _folder: file, _shard: Some(own), alone })
    }
}

/// Waits until nobody else is at the tables; the turn ends when the file is closed.
///
/// # Errors
/// If the system refuses.
pub(crate) fn turn(folder: &Utf8Path) -> Result<File, StoreError> {
    let path = folder.join(TURN);
    let file = open(&path)?;
    let locked = rustix::io::retry_on_intr(|| flock(file.as_fd(), FlockOperation::LockExclusive));
    locked.map_err(io::Error::from).map_err(io_error("lock", &path))?;
    Ok(file)
}

/// Not emptied: it may say what others have noted.
fn open(path: &Utf8Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(io_error("open", path))
}

fn is_free(file: &File, how: FlockOperation) -> io::Result<bool> {
    match flock(file.as_fd(), how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn note(file: &mut File, count: u32) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{count}")
}

fn noted(file: &mut File) -> io::Result<u32> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text.trim().parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Takes locks one after the other and holds them all; the last one is refused with a message, or not.
    fn check(shards: &[(u32, u32)], refusal: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let take = |(index, count): &(u32, u32)| {
            Lock::take(folder, Shard { index: *index, count: *count }, &turn(folder).unwrap())
        };
        let (last, first) = shards.split_last().unwrap();
        let _held: Vec<Lock> = first.iter().map(|shard| take(shard).unwrap()).collect();
        let told = take(last).err().map(|error| error.to_string().replace(folder.as_str(), "OUT"));
        assert_eq!(told.as_deref(), refusal, "{shards:?}");
    }

    #[test]
    fn parts_of_one_division_work_together_and_nobody_else() {
        let busy = "another `caulk clips prepare` is writing to `OUT`";
        let divided = "`OUT` is being written to in 2 shards, not in 3\n\
                       hint: wait until they are done, or divide by 2";
        check(&[(0, 2), (1, 2)], None);
        check(&[(0, 1), (0, 1)], Some(busy));
        check(&[(0, 1), (0, 2)], Some(busy));
        check(&[(0, 2), (0, 1)], Some(busy));
        check(&[(0, 2), (1, 2), (0, 2)], Some(busy));
        check(&[(0, 2), (1, 2), (0, 3)], Some(divided));
    }

    #[test]
    fn a_division_is_forgotten_with_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        for count in [12, 3, 1, 2] {
            let lock = Lock::take(folder, Shard { index: 0, count }, &turn(folder).unwrap());
            assert!(lock.unwrap().alone);
        }
    }
}
