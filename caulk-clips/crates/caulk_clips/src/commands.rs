//! What is asked of videos.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::folds;
use caulk_clip::job::{Decode, Outcome, Pictures, Request};
use caulk_clip::manifest::Manifest;
use caulk_clip::npy::npy_head;
use caulk_clip::place;
use caulk_clip::record::{self, Head, PIPELINE, Record};
use caulk_prepare::{Fetcher, Fetching, Pool, Settings, Shard, Worker};
use serde_json::json;

use crate::bar::Bar;
use crate::cli::{
    Action, DecodeArgs, EstimateArgs, Format, PatienceArgs, PrepareArgs, ScratchArgs, SplitArgs, VerifyArgs,
    WorkersArgs,
};
use crate::estimate::estimate;
use crate::same::first_of_each;
use crate::shape::{self, augmentations, head};
use crate::{exit, printer};

/// The program that fetches videos by URL, for whichever Python has fsspec.
const FETCHER: &str = include_str!("../../../python/caulk_clips/_fetch.py");

/// Does what is asked of videos.
///
/// # Errors
/// If there is no worker, files cannot be read or written, or the one video cannot be decoded.
pub(crate) fn run(action: &Action) -> anyhow::Result<i32> {
    match action {
        Action::Decode(args) => decode(args),
        Action::Prepare(args) => prepare(args),
        Action::Estimate(args) => print_estimate(args),
        Action::Split(args) => split(args),
        Action::Verify(args) => verify(args),
    }
}

fn worker() -> anyhow::Result<Utf8PathBuf> {
    let exe = std::env::current_exe().context("this program does not know where it is")?;
    let exe = Utf8PathBuf::try_from(exe).context("this program's folder is not Unicode")?;
    caulk_prepare::find(&exe).context("videos cannot be decoded here")
}

fn decode(args: &DecodeArgs) -> anyhow::Result<i32> {
    let shape = &args.shape;
    let mut path = place::locate("", &args.video);
    // The copy goes with what has made it.
    let mut fetcher = None;
    if place::is_url(&path) {
        let fetching = fetching(&args.scratch, 1, None)?;
        path = fetcher.insert(Fetcher::start(&fetching)?).fetch(&path, None)?;
    }
    let request = Request::Decode(Decode {
        path: path.clone(),
        name: (path != args.video).then(|| args.video.clone()),
        selection: shape.select.clone(),
        frames: shape.count()?,
        snap: shape.snap,
        size: Some(shape.size),
        fit: shape.fit,
        seed: shape.seed,
        sequential: args.sequential,
        cache: shape::cache(args.no_cache || fetcher.is_some()),
    });
    let (answer, bytes) = Worker::start(&worker()?, shape::each(args.memory.0, 1)?)?.ask(&request, None)?;
    let Pictures { frames, total, size, .. } = match answer.outcome {
        Outcome::Pictures(pictures) => pictures,
        Outcome::Failed(reason) => {
            let why: Vec<&str> =
                [reason.as_str()].into_iter().chain(answer.messages.iter().map(String::as_str)).collect();
            bail!("`{}` cannot be decoded: {}", args.video, why.join("\n"))
        }
        Outcome::Clips { .. } | Outcome::Unwritten(_) => bail!("the decoder answered something else"),
    };
    if let Some(why) = answer.sequential.filter(|_| !args.sequential) {
        printer::warn(&format!("`{}` was decoded as a whole: {why}", args.video));
    }
    let file = [npy_head(frames.len(), size), bytes].concat();
    fs::write(&args.output, file).with_context(|| format!("failed to write `{}`", args.output))?;
    let numbers: Vec<String> = frames.iter().map(u32::to_string).collect();
    printer::data(&format!("frames {} of {total}\n", numbers.join(",")))?;
    Ok(exit::SUCCESS)
}

fn read_manifest(path: &Utf8Path) -> anyhow::Result<Manifest> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read `{path}`"))?;
    Manifest::parse(&text).with_context(|| format!("`{path}` cannot be used"))
}

/// How videos get here that are named by URL. Nothing is started or made before there is one.
fn fetching(args: &ScratchArgs, jobs: usize, out: Option<&Utf8Path>) -> anyhow::Result<Fetching> {
    let exe = std::env::current_exe().context("this program does not know where it is")?;
    let beside = Utf8PathBuf::try_from(exe.with_file_name("python")).ok();
    let scratch = match (&args.scratch, out) {
        (Some(named), _) => named.clone(),
        (None, Some(out)) => out.to_owned(),
        (None, None) => {
            std::env::temp_dir().try_into().context("the folder for temporary files is not Unicode")?
        }
    };
    Ok(Fetching {
        program: FETCHER,
        pythons: beside.into_iter().chain(["python".into(), "python3".into()]).collect(),
        scratch,
        limit: args.scratch_limit.0 / jobs as u64,
    })
}

/// As many workers as asked for, if memory is enough for all.
fn pool(
    WorkersArgs { jobs, memory }: WorkersArgs,
    PatienceArgs { timeout }: PatienceArgs,
    scratch: &ScratchArgs,
    out: Option<&Utf8Path>,
) -> anyhow::Result<Pool> {
    let worker = worker()?;
    let jobs = shape::jobs(jobs, memory.0);
    let each = shape::each(memory.0, jobs as u64)?;
    let fetching = fetching(scratch, jobs, out)?;
    Ok(Pool { worker, jobs, memory: each, timeout: timeout.0, fetching })
}

fn prepare(args: &PrepareArgs) -> anyhow::Result<i32> {
    let manifest = read_manifest(&args.set.manifest)?;
    let augmentations = augmentations(&args.set)?;
    let pool = pool(args.set.workers, args.patience, &args.scratch, Some(&args.out))?;
    let folder = || args.set.manifest.parent().unwrap_or(Utf8Path::new("")).to_string();
    let settings = Settings {
        head: head(&args.set, caulk_prepare::ffmpeg_version(&pool.worker)?)?,
        pool,
        videos: args.source.clone().unwrap_or_else(folder),
        out: args.out.clone(),
        augmentations,
        shard: args.shard,
        cache: shape::cache(args.no_cache),
    };
    let mut bar = Bar::new();
    let done = caulk_prepare::prepare(&manifest, &settings, |progress| bar.show(progress))?;
    bar.clear();
    let before =
        if done.before > 0 { format!("; {} videos were done before", done.before) } else { String::new() };
    let (clips, videos) = (done.clips, done.done - done.failed);
    printer::say(&format!("{clips} clips of {videos} videos in `{}`{before}\n", args.out));
    if done.lost > 0 {
        printer::note(&format!(
            "{} videos had clips that were gone or of another size, to be made again",
            done.lost
        ));
    }
    if done.unnamed > 0 {
        printer::note(&format!(
            "`{}` holds clips of {} more videos, which this manifest does not name; no table has them",
            args.out, done.unnamed
        ));
    }
    if done.sequential > 0 {
        printer::note(&format!(
            "{} videos had to be decoded as a whole; clips.jsonl says why",
            done.sequential
        ));
    }
    if done.failed > 0 {
        printer::warn(&format!("{} videos gave no clips; failed.jsonl says why", done.failed));
    }
    Ok(if done.failed > 0 { exit::FOUND } else { exit::SUCCESS })
}

fn print_estimate(args: &EstimateArgs) -> anyhow::Result<i32> {
    let manifest = read_manifest(&args.set.manifest)?;
    let estimate = estimate(&args.set, manifest.videos().len() as u64)?;
    let text = match args.output {
        Format::Json => format!("{:#}\n", estimate.document()),
        Format::Text => estimate.text(),
    };
    printer::data(&text)?;
    Ok(exit::SUCCESS)
}

fn split(args: &SplitArgs) -> anyhow::Result<i32> {
    let manifest = read_manifest(&args.manifest)?;
    let videos = manifest.videos();
    let first = first_of_each(args.manifest.parent().unwrap_or(Utf8Path::new("")).as_str(), &videos);
    let groups = match &args.group {
        Some(column) => manifest.column(column)?,
        None => first.iter().map(|first| videos[*first]).collect(),
    };
    check_groups(args, &videos, &groups, &first)?;
    let labels = match args.stratify.as_deref() {
        Some(column) => manifest.column(column)?,
        None => manifest.labels(),
    };
    let logged = caulk_prepare::read_logs(&args.out)?;
    let Some(head) = logged.head else { bail!("`{}` holds no prepared clips", args.out) };
    let assigned = folds::assign(&groups, &labels, args.folds, args.seed);
    let split = folds::split(&videos, &assigned, args.folds, &logged.records);
    if split.iter().all(|fold| fold.validation.is_empty()) {
        bail!(
            "no video of `{}` has clips in `{}`\nhint: videos are the same where they are named the same",
            args.manifest,
            args.out
        );
    }
    let folder = args.out.join("folds");
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{folder}`"))?;
    let extension = head.recipe.format.extension();
    for (number, fold) in split.iter().enumerate() {
        let files = |clips: &[(&str, u32)]| -> Vec<String> {
            clips
                .iter()
                .map(|(video, augmentation)| record::clip_file(video, *augmentation, extension))
                .collect()
        };
        let document = json!({
            "schema": 1, "fold": number, "folds": args.folds, "group": args.group, "seed": args.seed,
            "train": files(&fold.train), "validation": files(&fold.validation),
        });
        let path = folder.join(format!("fold-{number}.json"));
        let written = caulk_prepare::replace(&path, Shard { index: 0, count: 1 }, &format!("{document:#}\n"));
        written.with_context(|| format!("failed to write `{path}`"))?;
        printer::data(&format!(
            "{path}: {} clips to train, {} to validate\n",
            fold.train.len(),
            fold.validation.len()
        ))?;
    }
    remove_folds(&folder, args.folds)?;
    Ok(exit::SUCCESS)
}

/// Every fold gets a group, every video is in one, and no video in two.
fn check_groups(args: &SplitArgs, videos: &[&str], groups: &[&str], first: &[usize]) -> anyhow::Result<()> {
    for ((video, group), first) in videos.iter().zip(groups).zip(first) {
        if group.is_empty() {
            bail!("`{video}` has no group: its cell is empty\nhint: all such videos would be one group");
        }
        if *group != groups[*first] {
            bail!("`{}` and `{video}` are the same video, in two groups", videos[*first]);
        }
    }
    let kinds: BTreeSet<&&str> = groups.iter().collect();
    if kinds.len() < args.folds as usize {
        bail!("{} groups cannot be divided into {} folds\nhint: lower --folds", kinds.len(), args.folds);
    }
    Ok(())
}

/// Those of an earlier division into more folds: training with one of them would mix both.
fn remove_folds(folder: &Utf8Path, folds: u32) -> anyhow::Result<()> {
    for entry in folder.read_dir_utf8().with_context(|| format!("failed to read `{folder}`"))?.flatten() {
        let number = entry.file_name().strip_prefix("fold-").and_then(|rest| rest.strip_suffix(".json"));
        if number.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number >= folds) {
            fs::remove_file(entry.path()).with_context(|| format!("failed to remove `{}`", entry.path()))?;
        }
    }
    Ok(())
}

fn verify(args: &VerifyArgs) -> anyhow::Result<i32> {
    let logged = caulk_prepare::read_logs(&args.folder)?;
    let Some(head) = logged.head else { bail!("`{}` holds no prepared clips", args.folder) };
    let mut checked = caulk_prepare::verify(&args.folder, &head, &logged.records);
    if let Some(source) = &args.source {
        let pool = pool(args.workers, args.patience, &args.scratch, None)?;
        checked.underived = derive(source, &head, &logged.records, &pool)?;
    }
    let text = match args.format {
        Format::Json => {
            let document = json!({
                "schema": 1, "right": checked.right, "missing": checked.missing, "changed": checked.changed,
                "underived": checked.underived,
            });
            format!("{document:#}\n")
        }
        Format::Text => {
            let changed = checked.changed.iter().map(|file| format!("changed  {file}\n"));
            let missing = checked.missing.iter().map(|file| format!("missing  {file}\n"));
            let underived = checked.underived.iter().map(|file| format!("differs  {file}\n"));
            let lines: String = changed.chain(missing).chain(underived).collect();
            let derived = if args.source.is_some() && checked.underived.is_empty() {
                "; their videos give the same\n"
            } else {
                "\n"
            };
            format!("{lines}{} clips are as logged{derived}", checked.right)
        }
    };
    printer::data(&text)?;
    Ok(if checked.is_right() { exit::SUCCESS } else { exit::FOUND })
}

/// Clips that come out otherwise when they are made anew, which only the FFmpeg that made them can tell.
fn derive(source: &str, head: &Head, records: &[Record], pool: &Pool) -> anyhow::Result<Vec<String>> {
    let ffmpeg = caulk_prepare::ffmpeg_version(&pool.worker)?;
    if (head.pipeline, &head.ffmpeg) != (PIPELINE, &ffmpeg) {
        bail!(
            "these clips were made by pipeline {} with FFmpeg {}; this is pipeline {PIPELINE} with FFmpeg {ffmpeg}\n\
             hint: without --source the files are compared with their log",
            head.pipeline,
            head.ffmpeg
        );
    }
    Ok(caulk_prepare::derive(source, head, records, pool)?)
}
