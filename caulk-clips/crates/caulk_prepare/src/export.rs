//! The table of all clips as Parquet, beside the CSV.

use std::fs::{self, File};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use camino::Utf8Path;
use caulk_clip::job::Written;
use caulk_clip::record::{self, COLUMNS, Record};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::partial;
use crate::shard::Shard;

/// Rows that are held in memory at once.
const GROUP_ROWS: usize = 1 << 16;

/// Writes the clips, in the order given, to a file that appears whole or not at all.
pub(crate) fn parquet(
    path: &Utf8Path,
    shard: Shard,
    clips: &[(&Record, &Written)],
    extension: &str,
) -> Result<(), ParquetError> {
    let partial = partial::beside(path, shard);
    let file = File::create(&partial)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = batch(&[], extension)?.schema();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties))?;
    for group in clips.chunks(GROUP_ROWS) {
        writer.write(&batch(group, extension)?)?;
        writer.flush()?;
    }
    writer.into_inner()?.sync_data()?;
    Ok(fs::rename(&partial, path)?)
}

fn batch(clips: &[(&Record, &Written)], extension: &str) -> Result<RecordBatch, ParquetError> {
    let text = |of: &dyn Fn(&Record, &Written) -> String| -> ArrayRef {
        Arc::new(clips.iter().map(|(record, clip)| Some(of(record, clip))).collect::<StringArray>())
    };
    let numbers: Int32Array = clips.iter().map(|(_, clip)| Some(clip.augmentation as i32)).collect();
    let columns = [
        text(&|record, clip| record::clip_file(&record.video, clip.augmentation, extension)),
        text(&|record, _| record.label.clone()),
        text(&|record, _| record.video.clone()),
        Arc::new(numbers),
    ];
    Ok(RecordBatch::try_from_iter(COLUMNS.into_iter().zip(columns))?)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn clips_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("metadata.parquet");
        let clip = |augmentation| Written {
            augmentation,
            frames: vec![0],
            meant: Vec::new(),
            sha256: String::new(),
            bytes: 1,
        };
        let record = Record {
            video: "a.mp4".into(),
            label: "real".into(),
            total: 1,
            clips: vec![clip(0), clip(1)],
            ..Record::default()
        };
        let clips: Vec<_> = record.clips.iter().map(|clip| (&record, clip)).collect();
        parquet(&path, Shard { index: 0, count: 1 }, &clips, "npy").unwrap();
        let file = File::open(&path).unwrap();
        let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batch = batches.map(Result::unwrap).next().unwrap();
        let file = batch.column_by_name("video_path").unwrap().as_string::<i32>().value(1).to_owned();
        assert_eq!(file, record::clip_file("a.mp4", 1, "npy"));
        let numbers = batch.column_by_name("augmentation_idx").unwrap().as_primitive::<Int32Type>();
        assert_eq!(numbers.values().to_vec(), [0, 1]);
    }
}
