//! A finished table: Parquet, compressed with snappy.

use std::fs::{self, File, OpenOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use camino::{Utf8Path, Utf8PathBuf};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::index::{Mark, Part};
use crate::private;
use crate::record::Row;
use crate::stream::read_at;
use crate::tables::Table;

/// Rows of a group: what is held in memory while writing, and what one damaged byte costs.
const GROUP_ROWS: usize = 8192;
/// Bytes behind the footer: its length and the closing mark.
const TAIL: usize = 8;

/// A table that is being finished; it gets its name when it is whole.
pub(crate) struct TableFile {
    table: Table,
    writer: ArrowWriter<File>,
    new: Utf8PathBuf,
    path: Utf8PathBuf,
}

impl TableFile {
    pub(crate) fn create(folder: &Utf8Path, table: Table) -> Result<Self, ParquetError> {
        let path = folder.join(table.parquet());
        let new = folder.join(Self::new_name(table));
        let file = private::open(OpenOptions::new().write(true).create(true).truncate(true), &new)?;
        let writer = ArrowWriter::try_new(file, table.schema(), Some(properties(table)))?;
        Ok(Self { table, writer, new, path })
    }

    /// Name of the file while it is being written.
    pub(crate) fn new_name(table: Table) -> String {
        format!(".{}.new", table.parquet())
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        self.writer.write(batch)?;
        if self.writer.in_progress_rows() >= GROUP_ROWS {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Closes the file, gives it its name, and says what lies where in it.
    pub(crate) fn finish(self) -> Result<Vec<Mark>, ParquetError> {
        let metadata = self.writer.close()?;
        let file = File::open(&self.new)?;
        let mut marks = Vec::new();
        // Each from the end of the one before it: the marks cover the file without a gap.
        let mut start = 0;
        for end in metadata.row_groups().iter().filter_map(end) {
            marks.push(Mark::Group(self.table, Part::of(start, &read_at(&file, start, end - start)?)));
            start = end;
        }
        marks.push(Mark::Footer(self.table, start, read_at(&file, start, u64::MAX)?));
        fs::rename(&self.new, &self.path)?;
        Ok(marks)
    }
}

/// Where a row group ends in the file.
fn end(group: &RowGroupMetaData) -> Option<u64> {
    let end = |column: &ColumnChunkMetaData| {
        let (start, length) = column.byte_range();
        start + length
    };
    group.columns().iter().map(end).max()
}

/// Numbers as differences, words by dictionary.
fn properties(table: Table) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(format!("caulk {}", crate::VERSION));
    for field in table.schema().fields() {
        if matches!(field.data_type(), DataType::UInt64 | DataType::UInt32) {
            let column = parquet::schema::types::ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// The rows of a finished table; groups that are damaged are left out and go to `problems`. `None` where there is no
/// file.
pub(crate) fn read(
    folder: &Utf8Path,
    table: Table,
    marks: &[Mark],
    problems: &mut Vec<String>,
) -> Option<Vec<Row>> {
    let path = folder.join(table.parquet());
    let mut rows = Vec::new();
    // Damage that no checksum tells of may be anything, also what the decoder never expected.
    let result = match File::open(&path) {
        Ok(file) => catch_unwind(AssertUnwindSafe(|| read_file(&file, table, marks, &mut rows)))
            .unwrap_or_else(|_| Err(vec!["is damaged, a part of it is missing".into()])),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => Err(vec![format!("cannot be opened: {error}")]),
    };
    problems.extend(result.err().into_iter().flatten().map(|problem| format!("`{path}` {problem}")));
    Some(rows)
}

fn read_file(file: &File, table: Table, marks: &[Mark], rows: &mut Vec<Row>) -> Result<(), Vec<String>> {
    let cannot = |error: &dyn std::fmt::Display| vec![format!("cannot be read: {error}")];
    let length = file.metadata().map_err(|error| cannot(&error))?.len();
    let known = Known::of(file, length, table, marks);
    let metadata = match &known {
        Some(known) => known.metadata.clone(),
        None => {
            ArrowReaderMetadata::load(file, ArrowReaderOptions::default()).map_err(|error| cannot(&error))?
        }
    };
    table.accepts(metadata.schema()).map_err(|reason| vec![reason])?;
    let mut problems = Vec::new();
    for group in 0..metadata.metadata().num_row_groups() {
        let sound = known.as_ref().is_none_or(|known| known.sound.get(group) == Some(&true));
        let read = if sound {
            read_group(file, &metadata, table, group, rows).map_err(|error| error.to_string())
        } else {
            Err("wrong checksum".into())
        };
        if let Err(error) = read {
            problems.push(format!("is damaged, a part of it is missing: {error}"));
        }
    }
    if known.is_some_and(|known| !known.has_its_end) {
        problems.push("has a damaged end, or none; the index has a copy".into());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// What the index knows of a file.
struct Known {
    metadata: ArrowReaderMetadata,
    sound: Vec<bool>,
    has_its_end: bool,
}

impl Known {
    /// `None` where the index knows nothing, or another file: somebody has written the table anew.
    fn of(file: &File, length: u64, table: Table, marks: &[Mark]) -> Option<Self> {
        let (start, footer) = marks.iter().rev().find_map(|mark| match mark {
            Mark::Footer(of, start, bytes) if *of == table => Some((*start, bytes)),
            _ => None,
        })?;
        let sound: Vec<bool> = marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Group(of, part) if *of == table => Some(is_sound(file, part)),
                _ => None,
            })
            .collect();
        let has_its_end = start + footer.len() as u64 == length && is_sound(file, &Part::of(start, footer));
        let (rest, tail) = footer.split_last_chunk::<TAIL>()?;
        let (footer_length, _) = tail.split_first_chunk()?;
        let footer = rest.get(rest.len().checked_sub(u32::from_le_bytes(*footer_length) as usize)?..)?;
        let metadata = ParquetMetaDataReader::decode_metadata(footer).ok()?;
        let metadata =
            ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::default()).ok()?;
        let is_this_file = has_its_end || sound.contains(&true) || sound.is_empty();
        is_this_file.then_some(Self { metadata, sound, has_its_end })
    }
}

fn is_sound(file: &File, part: &Part) -> bool {
    read_at(file, part.start, part.length).is_ok_and(|bytes| part.fits(&bytes))
}

fn read_group(
    file: &File,
    metadata: &ArrowReaderMetadata,
    table: Table,
    group: usize,
    rows: &mut Vec<Row>,
) -> Result<(), ParquetError> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata.clone());
    for batch in builder.with_row_groups(vec![group]).build()? {
        table.decode(&batch?, rows)?;
    }
    Ok(())
}
