//! Whether prepared clips are what their log says.

use std::fs::File;
use std::io::{self, Read};

use camino::Utf8Path;
use caulk_clip::record::{self, Head, Record};
use sha2::{Digest, Sha256};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Clips that are as logged.
    pub right: usize,
    /// Files that are not there, and why.
    pub missing: Vec<String>,
    /// Files with other bytes.
    pub changed: Vec<String>,
}

/// Hashes every clip of a set.
pub fn verify(folder: &Utf8Path, head: &Head, records: &[Record]) -> Checked {
    let mut checked = Checked::default();
    for record in records {
        for clip in &record.clips {
            let file = record::clip_file(&record.video, clip.augmentation, head.recipe.format.extension());
            match hash(&folder.join(&file)) {
                Ok(hash) if hash == clip.sha256 => checked.right += 1,
                Ok(_) => checked.changed.push(file),
                Err(error) => checked.missing.push(format!("{file}: {error}")),
            }
        }
    }
    checked
}

fn hash(path: &Utf8Path) -> io::Result<String> {
    let (mut file, mut hash, mut part) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut part)? {
            0 => break,
            length => hash.update(&part[..length]),
        }
    }
    Ok(record::hex(&hash.finalize()))
}
