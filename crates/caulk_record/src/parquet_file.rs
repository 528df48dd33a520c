//! A finished table: Parquet, compressed with snappy.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use camino::{Utf8Path, Utf8PathBuf};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::record::Row;
use crate::tables::Table;

/// Rows of a group: what is held in memory while writing, and what one damaged byte costs.
const GROUP_ROWS: usize = 8192;

/// A table that is being finished; it gets its name when it is whole.
pub(crate) struct TableFile {
    writer: ArrowWriter<File>,
    new: Utf8PathBuf,
    path: Utf8PathBuf,
}

impl TableFile {
    pub(crate) fn create(folder: &Utf8Path, table: Table) -> Result<Self, ParquetError> {
        let path = folder.join(table.parquet());
        let new = folder.join(Self::new_name(table));
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let writer = ArrowWriter::try_new(file, table.schema(), Some(properties(table)))?;
        Ok(Self { writer, new, path })
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

    pub(crate) fn finish(self) -> Result<(), ParquetError> {
        self.writer.close()?;
        fs::rename(&self.new, &self.path)?;
        Ok(())
    }
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
pub(crate) fn read(folder: &Utf8Path, table: Table, problems: &mut Vec<String>) -> Option<Vec<Row>> {
    let path = folder.join(table.parquet());
    let mut rows = Vec::new();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            problems.push(format!("`{path}` cannot be opened: {error}"));
            return Some(rows);
        }
    };
    let metadata = match ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()) {
        Ok(metadata) => metadata,
        Err(error) => {
            problems.push(format!("`{path}` cannot be read: {error}"));
            return Some(rows);
        }
    };
    if let Err(reason) = table.accepts(metadata.schema()) {
        problems.push(format!("`{path}` {reason}"));
        return Some(rows);
    }
    for group in 0..metadata.metadata().num_row_groups() {
        if let Err(error) = read_group(&file, &metadata, table, group, &mut rows) {
            problems.push(format!("`{path}` is damaged, a part of it is missing: {error}"));
        }
    }
    Some(rows)
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
