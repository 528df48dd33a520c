//! Goes through the videos of a manifest: as many at once as there are workers, each video's clips logged when they are there.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;

use camino::Utf8PathBuf;
use caulk_clip::job::{Outcome, Prepare, Request};
use caulk_clip::manifest::Manifest;
use caulk_clip::record::{self, Failure, Head, Record};

use parquet::errors::ParquetError;

use crate::export;
use crate::store::{Shard, Store, StoreError};
use crate::worker::{Worker, WorkerError};

/// What to prepare.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The worker's executable.
    pub worker: Utf8PathBuf,
    /// Folder that names in the manifest are relative to.
    pub videos: Utf8PathBuf,
    /// Where clips go.
    pub out: Utf8PathBuf,
    /// How clips are made.
    pub head: Head,
    /// Which clips of each video; 0 is the original.
    pub augmentations: Vec<u32>,
    /// Workers.
    pub jobs: usize,
    /// Bytes that each worker may take.
    pub memory: u64,
    /// Which part of the videos.
    pub shard: Shard,
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
}

/// A video by its place in the manifest, and what came of it.
type Made = (usize, Result<Record, Failure>);

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
    let (mut store, mut records) = Store::open(&settings.out, settings.shard, &settings.head)?;
    let pending = pending(manifest, settings, &records);
    let extension = settings.head.recipe.format.extension();
    let table = |records: &[Record]| record::metadata(manifest.videos(), records, extension);
    store.replace("metadata.csv", &table(&records))?;
    let mut rows = store.appending("metadata.csv")?;
    let own = mine(manifest, settings.shard).count();
    let mut progress = Progress { videos: pending.len(), before: own - pending.len(), ..Progress::default() };
    let mut failures: Vec<(usize, Failure)> = Vec::new();
    tell(&progress);
    work(settings, pending, |(at, result)| {
        progress.done += 1;
        match result {
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
                failures.push((at, failure));
                store.replace_own("failed", "jsonl", &listed(&failures))?;
            }
        }
        tell(&progress);
        Ok(())
    })?;
    drop(rows);
    failures.sort_by_key(|(at, _)| *at);
    store.replace_own("failed", "jsonl", &listed(&failures))?;
    let order: HashMap<&str, usize> =
        manifest.videos().into_iter().enumerate().map(|(at, video)| (video, at)).collect();
    let shard = settings.shard;
    let mut own: Vec<&Record> = records
        .iter()
        .filter(|record| order.get(record.video.as_str()).is_some_and(|at| is_mine(*at, shard)))
        .collect();
    own.sort_by_key(|record| {
        (order[record.video.as_str()], record.clips.first().map(|clip| clip.augmentation))
    });
    store.settle(&settings.head, &own)?;
    // Others may have come further meanwhile.
    let all = crate::store::read_logs(&settings.out)?;
    store.replace("metadata.csv", &table(&all.records))?;
    let clips: Vec<_> = record::in_order(manifest.videos(), &all.records).collect();
    export::parquet(&settings.out.join("metadata.parquet"), &clips, extension)?;
    Ok(progress)
}

fn is_mine(at: usize, shard: Shard) -> bool {
    at as u64 % u64::from(shard.count.max(1)) == u64::from(shard.index)
}

fn mine(manifest: &Manifest, shard: Shard) -> impl Iterator<Item = usize> {
    (0..manifest.videos().len()).filter(move |at| is_mine(*at, shard))
}

/// A video with the clips that are missing.
struct Pending {
    at: usize,
    label: String,
    job: Prepare,
}

fn pending(manifest: &Manifest, settings: &Settings, records: &[Record]) -> Vec<Pending> {
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
            (*augmentation, settings.out.join(file).into_string())
        };
        let clips: Vec<(u32, String)> = missing.map(place).collect();
        let job = Prepare {
            path: settings.videos.join(videos[at]).into_string(),
            name: videos[at].to_owned(),
            recipe: settings.head.recipe.clone(),
            clips,
        };
        (!job.clips.is_empty()).then(|| Pending { at, label: labels[at].to_owned(), job })
    });
    pending.collect()
}

/// Gives videos to workers, and what comes of them to `take`, one at a time.
fn work(
    settings: &Settings,
    pending: Vec<Pending>,
    mut take: impl FnMut(Made) -> Result<(), PrepareError>,
) -> Result<(), PrepareError> {
    let jobs = settings.jobs.clamp(1, pending.len().max(1));
    let queue = Mutex::new(pending.into_iter());
    let (sender, results) = mpsc::sync_channel(jobs);
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || serve(settings, queue, &sender));
        }
        drop(sender);
        let taken = results.iter().try_for_each(|result| take(result?));
        // Whoever waits to hand over another result finds nobody, and stops.
        drop(results);
        taken
    })
}

fn serve(
    settings: &Settings,
    queue: &Mutex<std::vec::IntoIter<Pending>>,
    results: &mpsc::SyncSender<Result<Made, WorkerError>>,
) {
    let mut worker = None;
    loop {
        let next = queue.lock().ok().and_then(|mut queue| queue.next());
        let Some(pending) = next else { return };
        let result = one(settings, &mut worker, pending);
        let stop = result.is_err();
        if results.send(result).is_err() || stop {
            return;
        }
    }
}

/// One video. A worker that dies of it is replaced for the next.
fn one(settings: &Settings, worker: &mut Option<Worker>, pending: Pending) -> Result<Made, WorkerError> {
    let mut current = match worker.take() {
        Some(worker) => worker,
        None => Worker::start(&settings.worker, settings.memory)?,
    };
    let Pending { at, label, job } = pending;
    let video = job.name.clone();
    let failed = |reason: String, messages| (at, Err(Failure { video: video.clone(), reason, messages }));
    let answer = match current.ask(&Request::Prepare(job)) {
        Ok((answer, _)) => answer,
        Err(error) => return Ok(failed(error.to_string(), Vec::new())),
    };
    *worker = Some(current);
    Ok(match answer.outcome {
        Outcome::Clips { clips, total } => {
            (at, Ok(Record { video, label, total, clips, sequential: answer.sequential }))
        }
        Outcome::Failed(reason) => failed(reason, answer.messages),
        Outcome::Pictures(_) => failed("the decoder answered something else".into(), answer.messages),
    })
}

fn listed(failures: &[(usize, Failure)]) -> String {
    failures
        .iter()
        .filter_map(|(_, failure)| serde_json::to_string(failure).ok())
        .map(|line| line + "\n")
        .collect()
}
