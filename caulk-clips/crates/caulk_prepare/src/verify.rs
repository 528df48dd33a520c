//! Whether prepared clips are what their log says, and whether their videos still give them.

use std::fs::File;
use std::io::{self, Read};

use camino::Utf8Path;
use caulk_clip::job::{Outcome, Prepare, Written};
use caulk_clip::place;
use caulk_clip::record::{self, Head, Record};
use sha2::{Digest, Sha256};

use crate::pool::Pool;
use crate::worker::WorkerError;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Clips that are as logged.
    pub right: usize,
    /// Files that are not there, and why.
    pub missing: Vec<String>,
    /// Files with other bytes.
    pub changed: Vec<String>,
    /// Files that the videos do not give, and why.
    pub underived: Vec<String>,
}

impl Checked {
    /// Whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.missing.is_empty() && self.changed.is_empty() && self.underived.is_empty()
    }
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

/// Makes every clip anew from the videos in a folder, or below a URL, writes none, and names those that come out otherwise than logged.
///
/// # Errors
/// If no worker can be started.
pub fn derive(
    videos: &str,
    head: &Head,
    records: &[Record],
    pool: &Pool,
) -> Result<Vec<String>, WorkerError> {
    let job = |record: &Record| Prepare {
        path: place::locate(videos, &record.video),
        name: record.video.clone(),
        recipe: head.recipe.clone(),
        clips: record.clips.iter().map(|clip| (clip.augmentation, None)).collect(),
        cache: None,
    };
    let pending = records.iter().enumerate().map(|(at, record)| (at, job(record))).collect();
    let mut underived = Vec::new();
    pool.work(pending, |at: usize, answer| -> Result<(), WorkerError> {
        let record = &records[at];
        let (made, why) = match answer.map(|answer| answer.outcome) {
            Ok(Outcome::Clips { clips, .. }) => (clips, "its video gives another clip".to_owned()),
            Ok(Outcome::Failed(why) | Outcome::Unwritten(why)) => (Vec::new(), why),
            Ok(Outcome::Pictures(_)) => (Vec::new(), "the decoder answered something else".to_owned()),
            Err(error) => (Vec::new(), error.to_string()),
        };
        let others = record.clips.iter().filter(|clip| !made.contains(clip));
        let extension = head.recipe.format.extension();
        let name = |clip: &Written| record::clip_file(&record.video, clip.augmentation, extension);
        underived.extend(others.map(|clip| (at, format!("{}: {why}", name(clip)))));
        Ok(())
    })?;
    // Workers are done in any order.
    underived.sort_by_key(|(at, _)| *at);
    Ok(underived.into_iter().map(|(_, line)| line).collect())
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
