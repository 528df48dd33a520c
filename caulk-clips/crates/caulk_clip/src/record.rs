//! What has been made: the log's lines, and the names and tables that follow from them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::augment::Recipe;
use crate::job::Written;
use crate::table;

/// Version of what is done with decoded pictures and of the log. Another one gives other clips.
pub const PIPELINE: u32 = 3;

/// First line of a log: what its clips depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`PIPELINE`].
    pub pipeline: u32,
    /// Version of FFmpeg.
    pub ffmpeg: String,
    /// How clips are made.
    pub recipe: Recipe,
}

/// A line of the log: clips of one video that are there, whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The video as the manifest names it.
    pub video: String,
    /// What it shows.
    pub label: String,
    /// Frames that it has.
    pub total: u32,
    /// Its clips.
    pub clips: Vec<Written>,
    /// Why everything was decoded, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<String>,
    /// What the decoder said of damage that it could do without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// A video that gave no clips.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The video as the manifest names it.
    pub video: String,
    /// Why.
    pub reason: String,
    /// What the decoder said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// File of a clip below the folder of the set: the video's own name to recognise it by, and a hash of its path.
pub fn clip_file(video: &str, augmentation: u32, extension: &str) -> String {
    let hash = hex(&Sha256::digest(video.as_bytes())[..6]);
    let name = video.rsplit('/').next().unwrap_or(video);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let stem: String = stem.chars().take(60).map(plain).collect();
    format!("clips/{}/{stem}-{hash}-{augmentation}.{extension}", &hash[..2])
}

/// Bytes as text, two digits each.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// All clips in the manifest's order, each once, whatever the order in which they were made.
pub fn in_order<'a, 'v>(
    videos: impl IntoIterator<Item = &'v str>,
    records: &'a [Record],
) -> impl Iterator<Item = (&'a Record, &'a Written)> {
    let mut by_video: HashMap<&str, Vec<(&Record, &Written)>> = HashMap::new();
    for record in records {
        let clips = record.clips.iter().map(|clip| (record, clip));
        by_video.entry(&record.video).or_default().extend(clips);
    }
    videos.into_iter().filter_map(move |video| by_video.remove(video)).flat_map(|mut clips| {
        clips.sort_by_key(|(_, clip)| clip.augmentation);
        clips.dedup_by_key(|(_, clip)| clip.augmentation);
        clips
    })
}

/// Columns of the table of all clips.
pub const COLUMNS: [&str; 4] = ["video_path", "label", "original_video", "augmentation_idx"];

/// The table of all clips.
pub fn metadata<'v>(
    videos: impl IntoIterator<Item = &'v str>,
    records: &[Record],
    extension: &str,
) -> String {
    let rows = in_order(videos, records).map(|(record, clip)| row(record, clip, extension));
    std::iter::once(table::line(COLUMNS)).chain(rows).collect()
}

/// One row of it.
pub fn row(record: &Record, clip: &Written, extension: &str) -> String {
    let file = clip_file(&record.video, clip.augmentation, extension);
    table::line([&file, &record.label, &record.video, &clip.augmentation.to_string()].map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(video: &str, augmentations: &[u32]) -> Record {
        let clip = |augmentation: &u32| Written {
            augmentation: *augmentation,
            frames: vec![0],
            meant: Vec::new(),
            sha256: String::new(),
            bytes: 1,
        };
        let clips = augmentations.iter().map(clip).collect();
        Record { video: video.into(), label: "real".into(), total: 9, clips, ..Record::default() }
    }

    #[test]
    fn files_of_equal_names_in_different_folders_differ() {
        let (one, two) = (clip_file("a/clip 1.mp4", 0, "npy"), clip_file("b/clip 1.mp4", 0, "npy"));
        assert_ne!(one, two);
        assert_eq!(one, "clips/be/clip_1-beb2b83acde8-0.npy");
        assert!(!clip_file("../../etc/passwd", 1, "npy").contains(".."));
    }

    #[test]
    fn the_table_is_in_order_whatever_the_logs_order_was() {
        let records = [record("b.mp4", &[1]), record("a.mp4", &[1, 0]), record("b.mp4", &[0])];
        let text = metadata(["a.mp4", "b.mp4", "c.mp4"], &records, "npy");
        let rows: Vec<&str> =
            text.lines().skip(1).map(|row| row.split_once(',').unwrap_or_default().1).collect();
        assert_eq!(rows, ["real,a.mp4,0", "real,a.mp4,1", "real,b.mp4,0", "real,b.mp4,1"]);
    }
}
