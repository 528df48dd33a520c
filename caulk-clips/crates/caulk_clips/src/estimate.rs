//! What preparing clips takes: arithmetic on their shape, no video is opened.

use caulk_clip::memory::{Admission, BESIDE, Codec, bound};
use caulk_clip::npy::npy_head;
use caulk_core::Bytes;
use serde_json::{Value, json};

use crate::cli::SetArgs;
use crate::shape::{augmentations, each, jobs};

/// A worker before its first video, and this program with the log of a data set.
const WORKER: u64 = 8_000_000;
const PROGRAM: u64 = 24_000_000;
/// File systems give files whole blocks.
const BLOCK: u64 = 4096;
/// What log and tables say of a clip.
const LOGGED: u64 = 600;
/// A minute of a video at 30 frames per second, all frames as they are decoded: what loading it whole takes.
const WHOLE_FRAMES: u64 = 1800;

/// Figures in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate {
    videos: u64,
    clips: u64,
    clip: u64,
    /// All of them, with their log and tables.
    disk: u64,
    memory: Vec<Videos>,
    jobs: u64,
}

/// Videos of one resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Videos {
    width: u64,
    height: u64,
    /// What all workers together take at most, in bytes.
    bytes: u64,
    /// Whether a worker has memory for one.
    admitted: bool,
}

/// Works out what a data set of so many videos takes.
///
/// # Errors
/// If arguments contradict each other, or memory is not enough for any video.
pub(crate) fn estimate(set: &SetArgs, videos: u64) -> anyhow::Result<Estimate> {
    let frames = set.shape.count()? as usize;
    let clip = npy_head(frames, set.shape.size).len() + frames * set.shape.size.bytes();
    let jobs = jobs(set.workers.jobs, set.workers.memory.0) as u64;
    let each = each(set.workers.memory.0, jobs)?.saturating_sub(BESIDE);
    let of = |(width, height, level)| {
        let video = Admission { codec: Codec::H264, width, height, level: Some(level), profile: None };
        let pictures = (clip * (1 + set.augment as usize)) as u64;
        let bytes = PROGRAM + jobs * (WORKER + bound(&video) + pictures);
        Videos { width, height, bytes, admitted: bound(&video) <= each }
    };
    let memory = [(1280, 720, 31), (1920, 1080, 40), (3840, 2160, 51)].map(of).to_vec();
    let clips = videos * augmentations(set)?.len() as u64;
    let disk = clips * ((clip as u64).next_multiple_of(BLOCK) + LOGGED);
    Ok(Estimate { videos, clips, clip: clip as u64, disk, memory, jobs })
}

impl Estimate {
    pub(crate) fn text(&self) -> String {
        let Self { videos, clips, clip, jobs, .. } = self;
        let disk = Bytes(self.disk).to_string();
        let whole = Bytes(1920 * 1080 * 3 * WHOLE_FRAMES).to_string();
        let memory: Vec<String> = self
            .memory
            .iter()
            .map(|Videos { width, height, bytes, admitted }| {
                let bytes = Bytes(*bytes).to_string();
                let refused = if *admitted { "" } else { ": refused with this --memory" };
                format!(
                    "{bytes:>9}  of memory at most for H.264 at {width}x{height}, {jobs} at once{refused}"
                )
            })
            .collect();
        format!(
            "{clips} clips of {videos} videos, {} each\n{disk:>9}  on disk\n{}\n{whole:>9}  would be one video of a minute \
             at 1920x1080, loaded whole\n",
            Bytes(*clip),
            memory.join("\n"),
        )
    }

    pub(crate) fn document(&self) -> Value {
        let memory = self.memory.iter().map(|Videos { width, height, bytes, admitted }| {
            json!({ "codec": "h264", "width": width, "height": height, "bytes": bytes, "admitted": admitted })
        });
        json!({
            "schema": 1, "videos": self.videos, "clips": self.clips, "bytes_per_clip": self.clip,
            "disk_bytes": self.disk, "jobs": self.jobs, "memory": memory.collect::<Vec<_>>(),
        })
    }
}
