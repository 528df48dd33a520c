//! The report as one page for a browser, and smaller pages in the same frame ([`paper()`]): a file that needs nothing else, of at most [`MOST_BYTES`], however long the run was.
//!
//! Values in, text out. Sentences come from the caller, who also writes them for terminals; this crate draws: memory over
//! time, the forecast, findings with the path that holds them, the heap by stack, tables. The page is complete without a
//! script; the script adds zooming, sorting and searching.

mod axis;
mod base64;
mod buckets;
mod chart;
mod document;
mod finding;
mod flame;
mod forecast;
mod frame;
mod input;
mod marks;
mod paper;
mod path;
mod policy;
mod room;
mod series;
mod sides;
mod sparkline;
mod tables;
mod traces;
mod words;

pub use document::html;
pub use input::{
    Excerpt, FindingCard, Forecast, Hunk, Level, LineRow, Mood, PageAnswer, PageInput, Row, SourceLine,
    VerdictRow,
};
pub use paper::{Cell, Paper, PaperPart, PaperSection, paper};
pub use room::MOST_BYTES;
pub use sides::{SideFigure, SideRow};
pub use traces::Curve;
