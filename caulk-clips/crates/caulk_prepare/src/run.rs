//! Goes through the videos of a manifest: as many at once as there are workers, each video's clips logged when they are there.

use std::collections::HashSet;
use std::io::Write;

use camino::Utf8PathBuf;
use caulk_clip::job::{Answer, Outcome, Prepare};
use caulk_clip::manifest::Manifest;
use caulk_clip::place;
use caulk_clip::record::{self, Failure, Head, Record};
use parquet::errors::ParquetError;

use crate::error::StoreError;
use crate::export;
use crate::log::read_logs;
use crate::lost;
use crate::pool::Pool;
use crate::set::Set;
use crate::shard::Shard;
use crate::store::Store;
use crate::worker::WorkerError;

/// What to prepare.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who decodes.
    pub pool: Pool,
    /// Folder, or URL, that names in the manifest are relative to.
    pub videos: String,
    /// Where clips go.
    pub out: Utf8PathBuf,
    /// How clips are made.
    pub head: Head,
    /// Which clips of each video; 0 is the original.
    pub augmentations: Vec<u32>,
    /// Which part of the videos.
    pub shard: Shard,
    /// Folder for what packets of videos have told.
    pub cache: Option<String>,
}

/// Why the work stopped.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The table cannot be written as Parquet.
    #[error("failed to write `metadata.parquet`")]
    Parquet(#[from] ParquetError),
    /// No worker can be started.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A clip cannot be written.
    #[error("{0}\nhint: what was made before stays; the same command goes on from there")]
    Unwritten(String),
}

/// How far the work is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Videos to go through, without those that were done before.
    pub videos: usize,
    /// Done, failed ones included.
    pub done: usize,
    /// Gave no clips.
    pub failed: usize,
    /// Were decoded as a whole.
    pub sequential: usize,
    /// Clips written.
    pub clips: usize,
    /// Videos that were done before.
    pub before: usize,
    /// Videos that are logged but not in the manifest: in no table, and done before for the next one that names them.
    pub unnamed: usize,
    /// Videos that were done before, but of which clips were gone or had another size.
    pub lost: usize,
}

/// Prepares the clips of all videos that are not there yet.
///
/// # Errors
/// If the folder cannot be used or no worker can be started. A video that cannot be decoded is no error: it is in
/// `failed.jsonl`.
pub fn prepare(
    manifest: &Manifest,
    settings: &Settings,
    mut tell: impl FnMut(&Progress),
) -> Result<Progress, PrepareError> {
    let (mut store, logged) = Store::open(&settings.out, settings.shard, &settings.head)?;
    let set = Set::of(manifest, settings.shard);
    let (mut records, others) = set.divide(logged);
    let unnamed = others.iter().filter(|record| !set.names(record)).count();
    let extension = settings.head.recipe.format.extension();
    let lost = lost::take(&settings.out, extension, &mut records);
    let pending = pending(manifest, settings, &records);
    let turn = store.turn()?;
    let all = with_others(&records, &set, settings)?;
    store.replace("metadata.csv", &record::metadata(manifest.videos(), &all, extension))?;
    let mut rows = store.appending("metadata.csv")?;
    drop(turn);
    let own = mine(manifest, settings.shard).count();
    let mut progress =
        Progress { videos: pending.len(), before: own - pending.len(), unnamed, lost, ..Progress::default() };
    let mut failures: Vec<(usize, Failure)> = Vec::new();
    tell(&progress);
    settings.pool.work(pending, |of, answer| -> Result<(), PrepareError> {
        if let Ok(Answer { outcome: Outcome::Unwritten(why), .. }) = answer {
            return Err(PrepareError::Unwritten(why));
        }
        progress.done += 1;
        let at = of.at;
        match made(of, answer) {
            Ok(record) => {
                store.append(&record)?;
                progress.clips += record.clips.len();
                progress.sequential += usize::from(record.sequential.is_some());
                let text: String =
                    record.clips.iter().map(|clip| record::row(&record, clip, extension)).collect();
                // The table follows from the log: what is lost here is made anew.
                let _ = rows.write_all(text.as_bytes());
                records.push(record);
            }
            Err(failure) => {
                progress.failed += 1;
                store.fail(&failure)?;
                failures.push((at, failure));
            }
        }
        tell(&progress);
        Ok(())
    })?;
    drop(rows);
    failures.sort_by_key(|(at, _)| *at);
    store.replace_own("failed", ".jsonl", &listed(&failures))?;
    let (records, _) = set.divide(records);
    let (_, others) = set.divide(store.kept()?);
    store.settle(&settings.head, records.iter().chain(&others))?;
    // Others may have come further meanwhile; whoever is last writes of all.
    let _turn = store.turn()?;
    let all = with_others(&records, &set, settings)?;
    store.replace("metadata.csv", &record::metadata(manifest.videos(), &all, extension))?;
    let clips: Vec<_> = record::in_order(manifest.videos(), &all).collect();
    export::parquet(&settings.out.join("metadata.parquet"), settings.shard, &clips, extension)?;
    Ok(progress)
}

/// Own records, and what others have logged up to now.
fn with_others(own: &[Record], set: &Set<'_>, settings: &Settings) -> Result<Vec<Record>, StoreError> {
    let (_, others) = set.divide(read_logs(&settings.out)?.records);
    Ok(own.iter().cloned().chain(others).collect())
}

fn mine(manifest: &Manifest, shard: Shard) -> impl Iterator<Item = usize> {
    (0..manifest.videos().len()).filter(move |at| shard.has(*at))
}

/// A video whose clips are missing.
struct Pending {
    at: usize,
    video: String,
    label: String,
}

fn pending(manifest: &Manifest, settings: &Settings, records: &[Record]) -> Vec<(Pending, Prepare)> {
    let clips = records
        .iter()
        .flat_map(|record| record.clips.iter().map(|clip| (record.video.as_str(), clip.augmentation)));
    let there: HashSet<(&str, u32)> = clips.collect();
    let (videos, labels) = (manifest.videos(), manifest.labels());
    let pending = mine(manifest, settings.shard).filter_map(|at| {
        let missing = settings
            .augmentations
            .iter()
            .filter(|augmentation| !there.contains(&(videos[at], **augmentation)));
        let extension = settings.head.recipe.format.extension();
        let place = |augmentation: &u32| {
            let file = record::clip_file(videos[at], *augmentation, extension);
            (*augmentation, Some(settings.out.join(file).into_string()))
        };
        let clips: Vec<_> = missing.map(place).collect();
        let path = place::locate(&settings.videos, videos[at]);
        let job = Prepare {
            // A copy is another file each time.
            cache: settings.cache.clone().filter(|_| !place::is_url(&path)),
            path,
            name: videos[at].to_owned(),
            recipe: settings.head.recipe.clone(),
            clips,
        };
        let of = Pending { at, video: videos[at].to_owned(), label: labels[at].to_owned() };
        (!job.clips.is_empty()).then_some((of, job))
    });
    pending.collect()
}

/// What came of a video.
fn made(of: Pending, answer: Result<Answer, WorkerError>) -> Result<Record, Failure> {
    let Pending { video, label, .. } = of;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(Failure { video, reason: error.to_string(), messages: Vec::new() }),
    };
    let Answer { outcome, sequential, messages } = answer;
    let reason = match outcome {
        Outcome::Clips { clips, total } => {
            return Ok(Record { video, label, total, clips, sequential, messages });
        }
        Outcome::Failed(reason) | Outcome::Unwritten(reason) => reason,
        Outcome::Pictures(_) => "the decoder answered something else".into(),
    };
    Err(Failure { video, reason, messages })
}

fn listed(failures: &[(usize, Failure)]) -> String {
    failures
        .iter()
        .filter_map(|(_, failure)| serde_json::to_string(failure).ok())
        .map(|line| line + "\n")
        .collect()
}
