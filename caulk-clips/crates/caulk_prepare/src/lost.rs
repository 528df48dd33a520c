//! Clips that are logged and are not there any more: somebody has tidied up, or a disk was full.

use std::fs;
use std::thread;

use camino::Utf8Path;
use caulk_clip::record::{self, Record};

/// File systems of clusters answer slowly, but many at once.
const THREADS: usize = 16;

/// Takes clips out of records whose files are gone or have another size than logged, and says of how many videos there were some.
///
/// Contents are not read; `caulk clips verify` does that.
pub(crate) fn take(folder: &Utf8Path, extension: &str, records: &mut Vec<Record>) -> usize {
    let each = records.len().div_ceil(THREADS).max(1);
    let lost = thread::scope(|scope| {
        let parts = records.chunks_mut(each);
        let threads: Vec<_> =
            parts.map(|part| scope.spawn(move || take_of(folder, extension, part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum()
    });
    records.retain(|record| !record.clips.is_empty());
    lost
}

fn take_of(folder: &Utf8Path, extension: &str, records: &mut [Record]) -> usize {
    let mut lost = 0;
    for Record { video, clips, .. } in records {
        let logged = clips.len();
        clips.retain(|clip| {
            let file = folder.join(record::clip_file(video, clip.augmentation, extension));
            fs::metadata(file).is_ok_and(|data| data.len() == clip.bytes)
        });
        lost += usize::from(clips.len() < logged);
    }
    lost
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use caulk_clip::job::Written;

    use super::*;

    #[test]
    fn files_that_are_gone_or_of_another_size_are_lost() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let clip = |augmentation| Written {
            augmentation,
            frames: vec![0],
            meant: Vec::new(),
            sha256: String::new(),
            bytes: 4,
        };
        let record = |video: String, numbers: &[u32]| Record {
            video,
            total: 1,
            clips: numbers.iter().copied().map(clip).collect(),
            ..Record::default()
        };
        let mut records: Vec<_> = (0..40).map(|number| record(number.to_string(), &[0, 1])).collect();
        for number in 0..40 {
            for augmentation in 0..2 {
                let path = folder.join(record::clip_file(&number.to_string(), augmentation, "npy"));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "four").unwrap();
            }
        }
        let file = |video, augmentation| folder.join(record::clip_file(video, augmentation, "npy"));
        fs::remove_file(file("7", 1)).unwrap();
        fs::write(file("39", 0), "").unwrap();
        fs::write(file("39", 1), "longer").unwrap();
        assert_eq!(take(folder, "npy", &mut records), 2);
        assert_eq!(records.len(), 39);
        assert!(
            records.contains(&record("7".into(), &[0])) && records.contains(&record("8".into(), &[0, 1]))
        );
        assert_eq!(take(folder, "npy", &mut Vec::new()), 0);
    }
}
