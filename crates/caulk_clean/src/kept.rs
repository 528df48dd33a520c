//! Files that stay whatever folder they lie in: what a run reads, or what somebody packed to keep.

/// Endings of names by what they are.
const KINDS: [(&str, &[&str]); 3] = [
    ("an archive", &["7z", "bz2", "gz", "rar", "tar", "tgz", "xz", "zip", "zst"]),
    ("a video", &["avi", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "webm", "wmv"]),
    (
        "data",
        &[
            "arrow", "csv", "feather", "h5", "hdf5", "lmdb", "npy", "npz", "parquet", "sqlite", "tfrecord",
            "tsv",
        ],
    ),
];

/// What a file is by its name, if that makes it stay.
pub(crate) fn kind(name: &str) -> Option<&'static str> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    KINDS.iter().find(|(_, endings)| endings.contains(&ending.as_str())).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn what_runs_read_stays() {
        for (name, expected) in [
            ("runs.tar.gz", Some("an archive")),
            ("clip.MP4", Some("a video")),
            ("index.csv", Some("data")),
            ("events.out.tfevents.17", None),
            ("last.ckpt", None),
            ("csv", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
