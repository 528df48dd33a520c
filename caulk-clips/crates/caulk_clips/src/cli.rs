//! The command line.

use std::str::FromStr;

use anyhow::bail;
use camino::Utf8PathBuf;
use caulk_clip::Selection;
use caulk_clip::augment::{Format as FileFormat, Operation};
use caulk_clip::picture::{Fit, Size};
use caulk_core::Bytes;
use caulk_prepare::Shard;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::settings::Wait;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const HELP: &str = "\
Only the frames that are wanted are decoded, from the nearest key frames, and exactly those: frame i is the i-th that a \
full decode puts out. A video is never held as a whole.

Examples:
  caulk clips decode video.mp4 --frames 6 --size 112 --output clip.npy
  caulk clips estimate videos.csv --frames 6 --size 112 --augment 3
  caulk clips prepare videos.csv --out clips --frames 6 --size 112 --augment 3
  caulk clips split videos.csv --out clips --folds 5 --group person
  caulk clips verify clips --source .";

const PREPARE_HELP: &str = "\
MANIFEST is a table (CSV) whose header names the column `video_path`: a video per row, relative to the table's folder. \
A column `label` is kept with the clips; other columns serve `split`. For example:
  video_path,label,person
  videos/a.mp4,real,p1
  videos/b.mp4,fake,p2

In DIR there will be
  clips/...         one file per clip: unsigned 8-bit numbers, frames x rows x columns x red, green, blue
  metadata.csv      video_path, label, original_video, augmentation_idx: a row per clip, 0 is the original
  metadata.parquet  the same, when all is done
  clips.jsonl       the log: frames and SHA-256 of each clip, and what the decoder said of damage
  failed.jsonl      videos that gave no clips, and why

A video may be a URL that fsspec knows (s3://bucket/a.mp4, zip://a.mp4::videos.zip), or relative to one, with --source. A copy is made \
of one at a time for each worker; that takes a Python with fsspec beside caulk, or on the path.

A program that was stopped, however, goes on where it was when it is started again; failed videos are tried again.
Random numbers depend on `video_path`, the number of the augmentation and --seed alone: the same clips on every machine.

Exit code: 0 where all videos gave clips, 1 where some did not; 125 failed.";

/// Prepare clips of videos: exactly the frames that are wanted, in constant memory
#[derive(Debug, Parser)]
#[command(name = "caulk-clips", bin_name = "caulk clips", version, styles = STYLES, after_help = HELP, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// How to print data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    Decode(DecodeArgs),
    Prepare(PrepareArgs),
    Estimate(EstimateArgs),
    Split(SplitArgs),
    Verify(VerifyArgs),
}

/// Which frames, and how large.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShapeArgs {
    /// Frames per clip [default: 6, or as many as --select names]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) frames: Option<u32>,

    /// Which: uniform, segments, random, stride:N, or their numbers: 0,15,30
    #[arg(long, default_value = "uniform")]
    pub(crate) select: Selection,

    /// Take the frame that is cheapest to decode of those at most N away from each; the log says which
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) snap: u32,

    /// Size of the pictures: 112, or width x height: 224x112
    #[arg(long, default_value = "112", value_parser = size)]
    pub(crate) size: Size,

    /// How pictures get their shape: stretch, crop, pad
    #[arg(long, default_value = "stretch", value_parser = fit)]
    pub(crate) fit: Fit,

    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

impl ShapeArgs {
    /// Frames of a clip.
    pub(crate) fn count(&self) -> anyhow::Result<u32> {
        let count = self.select.count(self.frames.unwrap_or(6));
        match self.frames {
            Some(frames) if frames != count => {
                bail!("--select names {count} frames, --frames says {frames}\nhint: leave --frames out")
            }
            _ => Ok(count),
        }
    }
}

/// Where videos go that are named by URL.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScratchArgs {
    /// Folder for copies of videos that are named by URL; each worker holds one at a time [default: DIR of --out, else the system's
    /// folder for temporary files]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) scratch: Option<Utf8PathBuf>,

    /// What all copies together may take there; a video with more than its worker's part of it gives no clips
    #[arg(long, value_name = "SIZE", default_value = "10GB")]
    pub(crate) scratch_limit: Bytes,
}

/// Write some frames of one video as an array
#[derive(Debug, Args)]
pub(crate) struct DecodeArgs {
    /// The video: a file, or a URL that fsspec knows
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) video: String,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    /// File for the array (.npy)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Utf8PathBuf,

    /// Decode everything in order, whatever the file says of its frames
    #[arg(long, conflicts_with = "snap")]
    pub(crate) sequential: bool,

    /// Read all packets of videos whose containers have no table of them, instead of keeping what they tell (~/.cache/caulk/clips)
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// Memory that decoding may take
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    pub(crate) memory: Bytes,

    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,
}

/// What clips of a data set are like.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetArgs {
    /// Table of the videos (CSV) with the column `video_path`
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: Utf8PathBuf,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    /// Augmented clips of each video, besides the original
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) augment: u32,

    /// Leave the original out
    #[arg(long, requires = "augment")]
    pub(crate) no_original: bool,

    /// What augmented clips go through: flip, crop, rotation, color, blur, noise, temporal-jitter, frame-drop
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = operation,
          default_value = "flip,crop,rotation,color,blur,noise")]
    pub(crate) operations: Vec<Operation>,

    /// Format of the clips: npy, safetensors, pt
    #[arg(long, default_value = "npy", value_parser = file_format)]
    pub(crate) format: FileFormat,

    #[command(flatten)]
    pub(crate) workers: WorkersArgs,
}

/// Who decodes.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WorkersArgs {
    /// Videos that are decoded at once [default: one per processor, as far as each then has 400 MB of --memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Memory that all decoders together may take
    #[arg(long, value_name = "SIZE", default_value = "2GB")]
    pub(crate) memory: Bytes,
}

/// How long it may take.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PatienceArgs {
    /// How long one video may take before it is given up: 90s, 5min, 1h
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) timeout: Wait,
}

/// Make the clips of all videos of a table
#[derive(Debug, Args)]
#[command(after_help = PREPARE_HELP)]
pub(crate) struct PrepareArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,

    #[command(flatten)]
    pub(crate) patience: PatienceArgs,

    /// Where clips go
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Utf8PathBuf,

    /// Read all packets of videos whose containers have no table of them, instead of keeping what they tell (~/.cache/caulk/clips)
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// Folder or URL that `video_path` is relative to [default: the folder of MANIFEST]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) source: Option<String>,

    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,

    /// Prepare every N-th video only, from the I-th on (0 to N-1); programs with other I may share the folder
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    pub(crate) shard: Shard,
}

/// Say what `prepare` will take, before it does
#[derive(Debug, Args)]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,

    /// Format of the answer
    #[arg(long = "output-format", value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// Assign prepared clips to the folds of a cross-validation
#[derive(Debug, Args)]
pub(crate) struct SplitArgs {
    /// Table of the videos
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: Utf8PathBuf,

    /// Folder with the prepared clips
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Utf8PathBuf,

    /// Folds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) folds: u32,

    /// Column whose equal values stay together, such as a person's or a source's [default: each video for itself]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) group: Option<String>,

    /// Column whose values are spread evenly [default: label, where there is one]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) stratify: Option<String>,

    /// Seed of what is drawn among equal groups
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Check that prepared clips are what their log says, and with --source that their videos still give them
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Folder with the prepared clips
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: Utf8PathBuf,

    /// Folder of the manifest, or what --source of `prepare` named: make every clip anew from its video, write none, and compare
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) source: Option<String>,

    #[command(flatten)]
    pub(crate) workers: WorkersArgs,

    #[command(flatten)]
    pub(crate) patience: PatienceArgs,

    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,

    /// Format of the answer
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

fn size(text: &str) -> Result<Size, String> {
    let side = |text: &str| text.parse().ok().filter(|side| (1..=16_384).contains(side));
    let sides = match text.split_once('x') {
        Some((width, height)) => side(width).zip(side(height)),
        None => side(text).map(|side| (side, side)),
    };
    let (width, height) = sides.ok_or("write 112, or width x height: 224x112; at most 16384")?;
    Ok(Size { width, height })
}

fn fit(text: &str) -> Result<Fit, String> {
    match text {
        "stretch" => Ok(Fit::Stretch),
        "crop" => Ok(Fit::Crop),
        "pad" => Ok(Fit::Pad),
        _ => Err("write stretch, crop or pad".into()),
    }
}

fn operation(text: &str) -> Result<Operation, String> {
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == text.trim());
    found.ok_or_else(|| Operation::ALL.map(Operation::name).join(", "))
}

fn file_format(text: &str) -> Result<FileFormat, String> {
    let known = [FileFormat::Npy, FileFormat::Safetensors, FileFormat::Pt];
    known
        .into_iter()
        .find(|format| format.extension() == text)
        .ok_or_else(|| "write npy, safetensors or pt".into())
}

fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text
        .split_once('/')
        .and_then(|(index, count)| Some((u32::from_str(index).ok()?, u32::from_str(count).ok()?)));
    match numbers {
        Some((index, count)) if index < count => Ok(Shard { index, count }),
        _ => Err("write I/N with I from 0 to N-1, for example 0/8".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(size("112"), Ok(Size { width: 112, height: 112 }));
        assert_eq!(size("224x112"), Ok(Size { width: 224, height: 112 }));
        for text in ["", "0", "x", "1x", "-1", "99999"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shards() {
        assert_eq!(shard("7/8"), Ok(Shard { index: 7, count: 8 }));
        for text in ["8/8", "1", "0/0", "a/b"] {
            assert!(shard(text).is_err(), "{text}");
        }
    }
}
