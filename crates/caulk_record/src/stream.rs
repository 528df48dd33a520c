//! A table while it grows: an Arrow IPC stream, batch by batch.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::ArrowError;
use camino::{Utf8Path, Utf8PathBuf};

use crate::frames::append_whole;
use crate::index::{Mark, Part};
use crate::messages::{Message, measure};
use crate::private;
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

    /// Appends the rows as one batch and says where it lies, or leaves the file as it was.
    pub(crate) fn append(&mut self, rows: &[Row]) -> io::Result<Mark> {
        if self.open.is_none() {
            let file = private::open(OpenOptions::new().create(true).append(true), &self.path)?;
            self.open = Some((file, encoder(self.table).map_err(io::Error::other)?));
        }
        let mut bytes = Vec::new();
        let start = self.bytes;
        if let Some((file, encoder)) = &mut self.open {
            for buffer in encoder.encode(&self.table.encode(rows)).map_err(io::Error::other)? {
                bytes.extend_from_slice(&buffer);
            }
            append_whole(file, &mut self.bytes, &bytes).inspect_err(|_| {
                if start == 0 {
                    // The encoder believes that the schema is written.
                    self.open = None;
                }
            })?;
        }
        Ok(Mark::Batch(self.table, Part::of(start, &bytes)))
    }
}

fn encoder(table: Table) -> Result<StreamEncoder, ArrowError> {
    // Eight bytes of alignment instead of 64: most of a small batch would be padding.
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
    let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    StreamEncoder::try_new_with_options(&table.schema(), options)
}

/// Bytes read at once where the index does not say how long a batch is.
const CHUNK: u64 = 1 << 16;

/// Hands every sound batch of the stream to `each`. Batches that the index knows are read if their checksum is right;
/// what follows them, up to its first error. Nothing is handed over where there is no file.
///
/// # Errors
/// Those of `each`, at once.
pub(crate) fn each_batch<E>(
    folder: &Utf8Path,
    table: Table,
    marks: &[Mark],
    problems: &mut Vec<String>,
    mut each: impl FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let path = folder.join(table.stream());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                problems.push(format!("`{path}` cannot be opened: {error}"));
            }
            return Ok(());
        }
    };
    let mut decoder = StreamDecoder::new();
    let mut end = 0;
    for part in marks.iter().filter_map(|mark| match mark {
        Mark::Batch(of, part) if *of == table => Some(part),
        _ => None,
    }) {
        match read_at(&file, part.start, part.length) {
            Ok(bytes) if part.fits(&bytes) => match decode(&mut decoder, table, bytes) {
                Ok(batches) => batches.into_iter().try_for_each(&mut each)?,
                Err(error) => problems.push(format!("`{path}` {error}")),
            },
            Ok(_) => problems.push(format!("`{path}` is damaged or cut behind byte {}", part.start)),
            Err(error) => problems.push(format!("`{path}` cannot be read: {error}")),
        }
        end = part.start + part.length;
    }
    each_further_batch(&mut decoder, table, &file, end, &mut each, |problem| {
        problems.push(format!("`{path}` {problem}"));
    })
}

/// The batches from `end` on, about which the index says nothing.
fn each_further_batch<E>(
    decoder: &mut StreamDecoder,
    table: Table,
    file: &File,
    mut end: u64,
    each: &mut impl FnMut(RecordBatch) -> Result<(), E>,
    mut problem: impl FnMut(String),
) -> Result<(), E> {
    let mut bytes = Vec::new();
    let result = loop {
        match measure(&bytes) {
            Ok(Message::Whole(length)) => {
                let rest = bytes.split_off(length);
                match decode(decoder, table, std::mem::replace(&mut bytes, rest)) {
                    Ok(batches) => batches.into_iter().try_for_each(&mut *each)?,
                    Err(error) => break Err(error),
                }
            }
            Ok(Message::Cut) => match read_at(file, end, CHUNK.max(bytes.len() as u64)) {
                Ok(more) if more.is_empty() && bytes.is_empty() => break Ok(()),
                Ok(more) if more.is_empty() => break Err("stops in the middle of a batch".into()),
                Ok(more) => {
                    end += more.len() as u64;
                    bytes.extend_from_slice(&more);
                }
                Err(error) => break Err(format!("cannot be read: {error}")),
            },
            Ok(Message::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    result.unwrap_or_else(&mut problem);
    Ok(())
}

pub(crate) fn read_at(mut file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The batches that these bytes complete.
fn decode(decoder: &mut StreamDecoder, table: Table, bytes: Vec<u8>) -> Result<Vec<RecordBatch>, String> {
    let mut buffer = bytes.into();
    let mut batches = Vec::new();
    // Decoders are written for sound input; what the index does not vouch for may be anything.
    let step = std::panic::AssertUnwindSafe(|| {
        while let Some(batch) = decoder.decode(&mut buffer)? {
            batches.push(batch);
        }
        Ok::<_, ArrowError>(())
    });
    match std::panic::catch_unwind(step) {
        Ok(Ok(())) => (),
        Ok(Err(error)) => return Err(format!("is damaged, what follows is missing: {error}")),
        Err(_) => return Err("is damaged, what follows is missing".into()),
    }
    if let Some(schema) = decoder.schema() {
        table.accepts(&schema)?;
    }
    Ok(batches)
}
