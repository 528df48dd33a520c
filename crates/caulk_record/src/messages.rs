//! Arrow's messages in a stream that nothing vouches for: found, measured and checked before they are decoded, because a
//! decoder believes what a compressed buffer says of its own size.

use arrow_ipc::{RecordBatch, root_as_message};

/// LZ4 makes nothing more than 255 times smaller; what claims to be is damaged.
const LARGEST_RATIO: u64 = 256;
/// Longest metadata that is believed, in bytes.
const LONGEST_METADATA: usize = 1 << 20;
/// Mark and length before the metadata.
const PREFIX: usize = 8;

/// Longest message that is believed, in bytes.
const LONGEST: usize = 256 << 20;

/// The first message of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// It has this length, prefix included.
    Whole(usize),
    /// It ends beyond these bytes, as far as one can see.
    Cut,
    /// The stream was closed.
    End,
}

/// Finds the end of the first message.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn measure(bytes: &[u8]) -> Result<Message, String> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Ok(Message::Cut);
    };
    let [mark @ .., a, b, c, d] = *prefix;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if mark != [0xff; 4] || length > LONGEST_METADATA {
        return Err("is damaged, what follows is missing".into());
    }
    if length == 0 {
        return Ok(Message::End);
    }
    let Some((metadata, rest)) = rest.split_at_checked(length) else {
        return Ok(Message::Cut);
    };
    let message = root_as_message(metadata).map_err(|error| format!("is damaged: {error}"))?;
    let length = usize::try_from(message.bodyLength()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or("is damaged: impossible length")?;
    let Some(body) = rest.get(..length) else {
        return Ok(Message::Cut);
    };
    match message.header_as_record_batch() {
        Some(batch) if !has_sane_buffers(batch, body) => Err("is damaged: impossible buffer".into()),
        _ => Ok(Message::Whole(PREFIX + metadata.len() + length)),
    }
}

fn has_sane_buffers(batch: RecordBatch<'_>, body: &[u8]) -> bool {
    if batch.compression().is_none() {
        return true;
    }
    batch.buffers().into_iter().flatten().all(|buffer| {
        let (Ok(start), Ok(length)) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()))
        else {
            return false;
        };
        let bytes = start.checked_add(length).and_then(|end| body.get(start..end));
        let claim = |bytes: &[u8]| bytes.first_chunk::<8>().map(|claim| i64::from_le_bytes(*claim));
        // -1 stands for "not compressed".
        bytes.is_some_and(|bytes| {
            claim(bytes).is_none_or(|claim| claim <= (length as u64 * LARGEST_RATIO) as i64)
        })
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::record::{Record, Row};
    use crate::stream::Stream;
    use crate::tables::Table;
    use caulk_core::Sample;

    /// A stream of one batch: its schema and the batch.
    fn stream() -> (Vec<u8>, usize) {
        let guard = tempfile::tempdir().unwrap();
        let folder = camino::Utf8Path::from_path(guard.path()).unwrap();
        let rows: Vec<Row> =
            (0..99).map(|order| Row { order, record: Record::Sample(Sample::default()) }).collect();
        let mut stream = Stream::new(folder, Table::Samples);
        stream.append(&rows).unwrap();
        let bytes = std::fs::read(stream.path()).unwrap();
        let Ok(Message::Whole(schema)) = measure(&bytes) else {
            panic!("a schema first");
        };
        (bytes, schema)
    }

    #[test]
    fn messages_are_measured() {
        let (bytes, schema) = stream();
        assert_eq!(measure(&bytes[schema..]), Ok(Message::Whole(bytes.len() - schema)));
        for cut in [0, 3, 7, 8, schema - 1] {
            assert_eq!(measure(&bytes[..cut]), Ok(Message::Cut), "{cut}");
        }
        assert_eq!(measure(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), Ok(Message::End));
        assert!(measure(b"hello, world").is_err());
        assert!(measure(&[0; 64]).is_err());
    }

    #[test]
    fn a_buffer_that_claims_too_much_is_damaged() {
        let (mut bytes, schema) = stream();
        // The mark of LZ4's frame follows the claim of the buffer's size.
        let frame = bytes.windows(4).position(|four| four == [0x04, 0x22, 0x4d, 0x18]).unwrap();
        bytes[frame - 3] = 0x7f;
        assert!(measure(&bytes[schema..]).unwrap_err().contains("impossible buffer"));
    }
}
