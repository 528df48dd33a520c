//! Rows of a finding: a label on the left, what it says on the right.

use crate::page::{Page, Tone};

/// Columns of a label with its margins.
const LABEL: usize = 9;

/// Writes rows; a label that is empty continues the row above.
pub(crate) struct Rows<'a>(&'a mut Page);

impl<'a> Rows<'a> {
    pub(crate) fn new(page: &'a mut Page) -> Self {
        Self(page)
    }

    pub(crate) fn text(&mut self, label: &str, text: &str) {
        self.0.prose((Tone::Quiet, &head(label)), Tone::Plain, text);
    }

    pub(crate) fn strong(&mut self, label: &str, text: &str) {
        self.0.prose((Tone::Quiet, &head(label)), Tone::Strong, text);
    }

    /// Code, which is cut rather than wrapped.
    pub(crate) fn code(&mut self, label: &str, place: &str, code: &str) {
        self.0.line(&[(Tone::Quiet, &head(label)), (Tone::Quiet, place), (Tone::Plain, code)]);
    }

    /// What the row above means.
    pub(crate) fn note(&mut self, text: &str) {
        self.0.prose((Tone::Quiet, &format!("{}  ", head(""))), Tone::Plain, text);
    }

    pub(crate) fn chain(&mut self, label: &str, links: &[String], separator: &str) {
        self.0.chain(&head(label), Tone::Plain, links, separator);
    }
}

fn head(label: &str) -> String {
    format!("  {label:<LABEL$}")
}
