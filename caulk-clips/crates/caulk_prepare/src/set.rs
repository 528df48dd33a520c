//! What logs say, seen by one program that prepares a part of a manifest: which records are its own, and what they show.

use std::collections::HashMap;

use caulk_clip::manifest::Manifest;
use caulk_clip::record::Record;

use crate::shard::Shard;

/// The videos of a manifest.
#[derive(Debug)]
pub(crate) struct Set<'m> {
    videos: HashMap<&'m str, (usize, &'m str)>,
    shard: Shard,
}

impl<'m> Set<'m> {
    pub(crate) fn of(manifest: &'m Manifest, shard: Shard) -> Self {
        let rows = manifest.videos().into_iter().zip(manifest.labels()).enumerate();
        Self { videos: rows.map(|(at, (video, label))| (video, (at, label))).collect(), shard }
    }

    /// Own records in the manifest's order, each video once, and those of others, who may not be in the manifest at all.
    /// Labels are the manifest's, which may have been corrected since.
    pub(crate) fn divide(&self, records: Vec<Record>) -> (Vec<Record>, Vec<Record>) {
        let labelled = merged(records).into_iter().map(|mut record| {
            if let Some((_, label)) = self.videos.get(record.video.as_str()) {
                (*label).clone_into(&mut record.label);
            }
            record
        });
        let (mut own, others): (Vec<_>, Vec<_>) =
            labelled.partition(|record| self.place(record).is_some_and(|at| self.shard.has(at)));
        own.sort_by_key(|record| self.place(record));
        (own, others)
    }

    /// Whether the manifest has its video.
    pub(crate) fn names(&self, record: &Record) -> bool {
        self.place(record).is_some()
    }

    fn place(&self, record: &Record) -> Option<usize> {
        self.videos.get(record.video.as_str()).map(|(at, _)| *at)
    }
}

/// One record for each video. What is logged twice, by another division or as it had to be made again, counts as it was last.
pub(crate) fn merged(records: Vec<Record>) -> Vec<Record> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut merged: Vec<Record> = Vec::new();
    for mut record in records {
        let Some(at) = places.get(&record.video) else {
            places.insert(record.video.clone(), merged.len());
            merged.push(record);
            continue;
        };
        let before = &mut merged[*at];
        let is_again = |number: u32| record.clips.iter().any(|clip| clip.augmentation == number);
        before.clips.retain(|clip| !is_again(clip.augmentation));
        record.clips.append(&mut before.clips);
        record.clips.sort_by_key(|clip| clip.augmentation);
        record.sequential = record.sequential.or(before.sequential.take());
        *before = record;
    }
    merged
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use caulk_clip::job::Written;

    use super::*;

    /// Clips are `augmentation:hash`.
    fn record(video: &str, label: &str, clips: &[(u32, &str)]) -> Record {
        let clip = |(augmentation, hash): &(u32, &str)| Written {
            augmentation: *augmentation,
            frames: vec![0],
            meant: Vec::new(),
            sha256: (*hash).into(),
            bytes: 1,
        };
        let clips = clips.iter().map(clip).collect();
        Record { video: video.into(), label: label.into(), total: 9, clips, ..Record::default() }
    }

    fn check(shard: (u32, u32), records: &[Record], own: &[Record], others: &[Record]) {
        let manifest = Manifest::parse("video_path,label\na,real\nb,fake\nc,real\n").unwrap();
        let set = Set::of(&manifest, Shard { index: shard.0, count: shard.1 });
        assert_eq!(set.divide(records.to_vec()), (own.to_vec(), others.to_vec()));
    }

    #[test]
    fn labels_are_the_manifests() {
        let logged = [record("b", "real", &[(0, "x")]), record("a", "", &[(0, "y")])];
        check((0, 1), &logged, &[record("a", "real", &[(0, "y")]), record("b", "fake", &[(0, "x")])], &[]);
    }

    #[test]
    fn videos_of_other_shards_and_of_no_manifest_are_others() {
        let of = |video: &str, label: &str| record(video, label, &[(0, "x")]);
        let logged = [of("gone", "kept"), of("c", "real"), of("b", "old"), of("a", "real")];
        check((0, 2), &logged, &[of("a", "real"), of("c", "real")], &[of("gone", "kept"), of("b", "fake")]);
    }

    #[test]
    fn what_is_logged_twice_counts_as_it_was_last() {
        let logged = [
            record("a", "real", &[(0, "x"), (1, "y"), (3, "z")]),
            record("a", "real", &[(1, "new"), (2, "more")]),
        ];
        let once = record("a", "real", &[(0, "x"), (1, "new"), (2, "more"), (3, "z")]);
        check((0, 1), &logged, &[once], &[]);
    }
}
