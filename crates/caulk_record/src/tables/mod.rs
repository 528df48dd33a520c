//! Which record goes to which table.

mod census;
mod event;
mod events;
mod heap;
mod holders;
mod phases;
mod processes;
mod samples;

use std::collections::HashMap;
use std::str::FromStr;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use caulk_core::wire::Message;

use crate::columns::Cells;
use crate::record::{Record, Row};

/// One kind of record, one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    Samples,
    System,
    Processes,
    Phases,
    Census,
    Holders,
    Heap,
    Events,
    Gpus,
}

impl Table {
    pub(crate) const ALL: [Self; 9] = [
        Self::Samples,
        Self::System,
        Self::Processes,
        Self::Phases,
        Self::Census,
        Self::Holders,
        Self::Heap,
        Self::Events,
        Self::Gpus,
    ];

    /// Whether every finished recording has it: earlier versions did not know the others.
    pub(crate) const fn is_always_there(self) -> bool {
        !matches!(self, Self::Gpus)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::System => "system",
            Self::Processes => "processes",
            Self::Phases => "phases",
            Self::Census => "census",
            Self::Holders => "holders",
            Self::Heap => "heap",
            Self::Events => "events",
            Self::Gpus => "gpus",
        }
    }

    /// File name of the stream.
    pub(crate) fn stream(self) -> String {
        format!("{}.arrows", self.name())
    }

    /// File name of the finished table.
    pub(crate) fn parquet(self) -> String {
        format!("{}.parquet", self.name())
    }

    pub(crate) const fn of(record: &Record) -> Self {
        match record {
            Record::Sample(_) => Self::Samples,
            Record::System(_) => Self::System,
            Record::Process(_) => Self::Processes,
            Record::Gpu(_) => Self::Gpus,
            Record::Event(event) => match event.message {
                Message::Boundary(_) => Self::Phases,
                Message::Types(_) | Message::ContainerLen(_) => Self::Census,
                Message::Holder(_) | Message::Contents(_) => Self::Holders,
                Message::HeapStack(_) | Message::HeapLive(_) => Self::Heap,
                _ => Self::Events,
            },
        }
    }

    pub(crate) fn schema(self) -> SchemaRef {
        self.encode(&[]).schema()
    }

    /// The rows as a batch. Rows of other tables are left out.
    pub(crate) fn encode(self, rows: &[Row]) -> RecordBatch {
        let columns = match self {
            Self::Samples => samples::encode(rows),
            Self::System => samples::encode_system(rows),
            Self::Processes => processes::encode(rows),
            Self::Phases => phases::encode(rows),
            Self::Census => census::encode(rows),
            Self::Holders => holders::encode(rows),
            Self::Heap => heap::encode(rows),
            Self::Events => events::encode(rows),
            Self::Gpus => samples::encode_gpus(rows),
        };
        columns.finish(HashMap::from([
            (TABLE_KEY.into(), self.name().into()),
            (SCHEMA_KEY.into(), crate::SCHEMA.to_string()),
            (VERSION_KEY.into(), crate::VERSION.into()),
        ]))
    }

    /// Adds the batch's rows to `rows`.
    pub(crate) fn decode(self, batch: &RecordBatch, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
        let cells = Cells(batch);
        match self {
            Self::Samples => samples::decode(cells, rows),
            Self::System => samples::decode_system(cells, rows),
            Self::Processes => processes::decode(cells, rows),
            Self::Phases => phases::decode(cells, rows),
            Self::Census => census::decode(cells, rows),
            Self::Holders => holders::decode(cells, rows),
            Self::Heap => heap::decode(cells, rows),
            Self::Events => events::decode(cells, rows),
            Self::Gpus => samples::decode_gpus(cells, rows),
        }
    }

    /// Whether the file with this schema is this table, in a version that can be read.
    pub(crate) fn accepts(self, schema: &Schema) -> Result<(), String> {
        let word = |key: &str| schema.metadata().get(key).map(String::as_str);
        if word(TABLE_KEY) != Some(self.name()) {
            return Err("is not a table of caulk".into());
        }
        match word(SCHEMA_KEY).map(u32::from_str) {
            Some(Ok(number)) if number <= crate::SCHEMA => Ok(()),
            _ => Err(format!(
                "has a schema that this caulk cannot read; hint: written by caulk {}; upgrade",
                word(VERSION_KEY).unwrap_or("of another version")
            )),
        }
    }
}

const TABLE_KEY: &str = "caulk.table";
const SCHEMA_KEY: &str = "caulk.schema";
const VERSION_KEY: &str = "caulk.version";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_knows_its_own() {
        for table in Table::ALL {
            assert_eq!(Table::ALL[table as usize], table);
            assert_eq!(table.accepts(&table.schema()), Ok(()));
        }
        assert!(Table::Samples.accepts(&Table::System.schema()).is_err());
        let later = HashMap::from([
            (TABLE_KEY.to_owned(), "system".to_owned()),
            (SCHEMA_KEY.to_owned(), "99".to_owned()),
            (VERSION_KEY.to_owned(), "7.0".to_owned()),
        ]);
        let later = Schema::clone(&Table::System.schema()).with_metadata(later);
        let reason = Table::System.accepts(&later);
        assert!(reason.is_err_and(|reason| reason.ends_with("hint: written by caulk 7.0; upgrade")));
    }
}
