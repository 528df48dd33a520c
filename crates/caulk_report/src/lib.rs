//! Findings and verdicts for people and for programs.
//!
//! Rendering only: values in, text out. Knows no files, terminals or clocks: whoever calls decides about colour and
//! width, and brings the source lines that findings point at ([`Excerpts`]).

mod advice;
mod ascii;
mod cells;
mod chain;
mod change;
pub mod check;
mod comparison;
mod cuda_snapshot;
mod death;
mod difference;
mod evidence;
mod excerpt;
mod explained;
mod finding;
mod findings;
mod flame;
mod format;
mod headline;
mod html;
mod json;
mod ledger;
mod life;
mod lines;
mod listing;
mod lives;
mod markdown;
mod message;
mod outlook;
mod page;
mod pprof;
mod refused;
mod remark;
mod report;
mod rows;
mod shown;
mod text;
mod verification;
mod words;

pub use advice::{fix, fix_of};
pub use cells::{Cells, Numbered};
pub use comparison::{comparison_json, comparison_text};
pub use cuda_snapshot::{
    CudaSnapshotReport, cuda_difference_json, cuda_difference_text, cuda_snapshot_json, cuda_snapshot_text,
};
pub use difference::{difference_html, difference_json, difference_markdown, difference_text};
pub use evidence::evidence_text;
pub use excerpt::Excerpts;
pub use flame::flame_html;
pub use format::{Format, check_in, run_in, run_without_source};
pub use html::{Details, html};
pub use json::json;
#[cfg(feature = "schema")]
pub use json::schema;
pub use ledger::ledger_text;
pub use life::Life;
pub use lines::{lines_json, lines_text};
use listing::listing;
pub use lives::{join, judged};
pub use markdown::markdown;
pub use message::message;
pub use outlook::{Outlook, outlook};
pub use pprof::{ProfileHead, pprof};
pub use remark::note;
pub use report::{Report, Summary};
pub use shown::Shown;
pub use text::{TextOptions, text};
pub use verification::{
    verification_html, verification_json, verification_junit, verification_markdown, verification_text,
};
pub use words::{ending, seconds, sentence_case};

/// Version of the JSON documents of `run` and `report`. Since 2, notes are objects with a code. Fields may be added under one number; their meaning never changes.
pub const SCHEMA: u32 = 2;
