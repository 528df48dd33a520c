//! A table while it grows: an Arrow IPC stream, batch by batch, each with its checksum in the index.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_ipc::{CompressionType, MetadataVersion};
use camino::{Utf8Path, Utf8PathBuf};

use crate::frames::append_whole;
use crate::record::Row;
use crate::tables::Table;

/// A stream that is being written. Its file is made with the first batch.
pub(crate) struct Stream {
    table: Table,
    path: Utf8PathBuf,
    open: Option<(File, StreamEncoder)>,
    bytes: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(folder: &Utf8Path, table: Table) -> Self {
        Self { table, path: folder.join(table.stream()), open: None, bytes: 0 }
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Appends the rows as one batch, or leaves the file as it was.
    pub(crate) fn append(&mut self, rows: &[Row]) -> io::Result<()> {
        if self.open.is_none() {
            let options = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
            self.open = Some((options, encoder(self.table).map_err(io::Error::other)?));
        }
        let Some((file, encoder)) = &mut self.open else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        for buffer in encoder.encode(&self.table.encode(rows)).map_err(io::Error::other)? {
            bytes.extend_from_slice(&buffer);
        }
        append_whole(file, &mut self.bytes, &bytes).inspect_err(|_| {
            if self.bytes == 0 {
                // The encoder believes that the schema is written.
                self.open = None;
            }
        })
    }
}

fn encoder(table: Table) -> Result<StreamEncoder, arrow_schema::ArrowError> {
    // Eight bytes of alignment instead of 64: most of a small batch would be padding.
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
    let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    StreamEncoder::try_new_with_options(&table.schema(), options)
}

/// The batches of a stream up to its end or its first damage, which goes to `problems`. None where there is no file.
pub(crate) fn batches<'a>(
    folder: &Utf8Path,
    table: Table,
    problems: &'a mut Vec<String>,
) -> impl Iterator<Item = RecordBatch> + 'a {
    let path = folder.join(table.stream());
    let mut reader = open(&path, table, problems);
    std::iter::from_fn(move || match reader.as_mut()?.next()? {
        Ok(batch) => Some(batch),
        Err(error) => {
            problems.push(format!("`{path}` is damaged, what follows is missing: {error}"));
            reader = None;
            None
        }
    })
}

fn open(path: &Utf8Path, table: Table, problems: &mut Vec<String>) -> Option<StreamReader<BufReader<File>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                problems.push(format!("`{path}` cannot be opened: {error}"));
            }
            return None;
        }
    };
    let problem = match StreamReader::try_new(BufReader::new(file), None) {
        Ok(reader) => match table.accepts(&reader.schema()) {
            Ok(()) => return Some(reader),
            Err(reason) => format!("`{path}` {reason}"),
        },
        Err(error) => format!("`{path}` cannot be read: {error}"),
    };
    problems.push(problem);
    None
}
