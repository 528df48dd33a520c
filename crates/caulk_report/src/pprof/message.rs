//! The messages of a pprof profile, as `profile.proto` of <https://github.com/google/pprof> numbers their fields.
//!
//! Left out are mappings and filters of frames: a Python frame has neither. A text is its number in the table of strings.

use prost::Message;

/// A whole profile.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Profile {
    /// What each value of a sample is.
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    /// Stacks with their values.
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<Sample>,
    /// Lines of functions.
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<Function>,
    /// Every text; the first one is empty.
    #[prost(string, repeated, tag = "6")]
    pub(crate) string_table: Vec<String>,
    /// Start of the run since 1970, in nanoseconds.
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    /// Length of the run, in nanoseconds.
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    /// What the period counts.
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    /// Mean distance between samples.
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    /// Lines for people.
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    /// The value that is shown first.
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

/// A kind of value and its unit.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueType {
    /// Such as `inuse_space`.
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    /// Such as `bytes`.
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// The values of one stack.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    /// Locations, the innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    /// One for each type.
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    /// By what the samples can be filtered.
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

/// A key with its value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Label {
    /// Key.
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    /// Value, as text.
    #[prost(int64, tag = "2")]
    pub(crate) text: i64,
}

/// A place in the program.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    /// Number, from 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// Its one line.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    /// Line, from 1; 0 if there is none.
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Function {
    /// Number, from 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// Name.
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    /// The same name, since Python mangles none.
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    /// File.
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
}
