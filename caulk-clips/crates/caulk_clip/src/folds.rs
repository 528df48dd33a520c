//! Folds of videos for cross-validation: groups stay whole, labels are spread evenly.

use std::collections::{BTreeMap, HashMap};

use crate::random::Key;
use crate::record::Record;

/// Clips of one fold, by video and augmentation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fold<'a> {
    /// Clips of all videos of other folds.
    pub train: Vec<(&'a str, u32)>,
    /// The original of each video of this fold; an augmented clip is never validated with, unless there is nothing else.
    pub validation: Vec<(&'a str, u32)>,
}

/// Clips of each fold, in the order of `videos`, from what has been prepared. A video is on one side alone.
pub fn split<'a>(videos: &[&'a str], assigned: &[u32], folds: u32, records: &[Record]) -> Vec<Fold<'a>> {
    let mut clips: HashMap<&str, Vec<u32>> = HashMap::new();
    for record in records {
        clips.entry(&record.video).or_default().extend(record.clips.iter().map(|clip| clip.augmentation));
    }
    let mut all = vec![Fold::default(); folds as usize];
    for (video, fold) in videos.iter().zip(assigned) {
        let mut augmentations = clips.remove(video).unwrap_or_default();
        augmentations.sort_unstable();
        augmentations.dedup();
        for (number, side) in all.iter_mut().enumerate() {
            if number as u32 == *fold {
                side.validation.extend(augmentations.first().map(|first| (*video, *first)));
            } else {
                side.train.extend(augmentations.iter().map(|augmentation| (*video, *augmentation)));
            }
        }
    }
    all
}

/// Assigns each video to one of `folds`. Videos with equal `groups` share a fold; `labels` are spread as evenly as that allows.
///
/// Greedy: the largest groups first, equal ones in an order that the seed draws, each to the fold that then departs least from
/// an even share of each label.
pub fn assign(groups: &[&str], labels: &[&str], folds: u32, seed: u64) -> Vec<u32> {
    let folds = folds.max(1) as usize;
    let mut kinds: Vec<&str> = labels.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    let kind: HashMap<&str, usize> = kinds.iter().enumerate().map(|(at, label)| (*label, at)).collect();
    let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (group, label) in groups.iter().zip(labels) {
        counts.entry(group).or_insert_with(|| vec![0; kinds.len()])[kind[label]] += 1;
    }
    let mut order: Vec<(&str, Vec<u64>)> = counts.into_iter().collect();
    order.sort_by_cached_key(|(group, counts)| {
        (u64::MAX - counts.iter().sum::<u64>(), Key::of(group, 0, seed).draws("folds").bits())
    });
    let mut filled = vec![vec![0_u64; kinds.len()]; folds];
    let mut fold_of: HashMap<&str, u32> = HashMap::new();
    for (group, counts) in order {
        let fold = (0..folds).min_by_key(|fold| (cost(&filled[*fold], &counts), *fold)).unwrap_or(0);
        for (sum, count) in filled[fold].iter_mut().zip(counts) {
            *sum += count;
        }
        fold_of.insert(group, fold as u32);
    }
    groups.iter().map(|group| fold_of[group]).collect()
}

/// By how much the sum of squares grows: least where what comes is scarce, and then where there is least at all.
fn cost(filled: &[u64], more: &[u64]) -> (u64, u64) {
    let grows = filled.iter().zip(more).map(|(filled, more)| more * (2 * filled + more)).sum();
    (grows, filled.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(assigned: &[u32], folds: u32) -> Vec<usize> {
        (0..folds).map(|fold| assigned.iter().filter(|other| **other == fold).count()).collect()
    }

    #[test]
    fn groups_stay_whole() {
        let names: Vec<String> = (0..60).map(|i| format!("person {}", i / 4)).collect();
        let groups: Vec<&str> = names.iter().map(String::as_str).collect();
        let assigned = assign(&groups, &["x"; 60], 5, 0);
        for (at, fold) in assigned.iter().enumerate() {
            assert_eq!(*fold, assigned[at / 4 * 4]);
        }
        assert_eq!(sizes(&assigned, 5), [12; 5]);
    }

    #[test]
    fn no_video_is_on_both_sides_and_none_is_validated_varied() {
        let clip = |augmentation| crate::job::Written {
            augmentation,
            frames: Vec::new(),
            meant: Vec::new(),
            sha256: String::new(),
            bytes: 0,
        };
        let record = |video: &str| Record {
            video: video.into(),
            total: 1,
            clips: vec![clip(1), clip(0)],
            ..Record::default()
        };
        let folds = split(&["a", "b", "gone"], &[0, 1, 0], 2, &[record("a"), record("b")]);
        assert_eq!(
            (folds[0].train.as_slice(), folds[0].validation.as_slice()),
            (&[("b", 0), ("b", 1)][..], &[("a", 0)][..])
        );
        assert_eq!(
            (folds[1].train.as_slice(), folds[1].validation.as_slice()),
            (&[("a", 0), ("a", 1)][..], &[("b", 0)][..])
        );
    }

    #[test]
    fn labels_are_spread() {
        let names: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        let groups: Vec<&str> = names.iter().map(String::as_str).collect();
        let labels: Vec<&str> = (0..100).map(|i| if i % 4 == 0 { "fake" } else { "real" }).collect();
        let assigned = assign(&groups, &labels, 5, 3);
        for fold in 0..5 {
            let fakes =
                assigned.iter().zip(&labels).filter(|(other, label)| **other == fold && **label == "fake");
            assert_eq!(fakes.count(), 5);
        }
        assert_eq!(assigned, assign(&groups, &labels, 5, 3));
        assert_ne!(assigned, assign(&groups, &labels, 5, 4));
    }
}
