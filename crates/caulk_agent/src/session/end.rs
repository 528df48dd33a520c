//! The end of a session: what is armed is taken off, and what was left out is reported.

use caulk_wire::NoteCode;
use pyo3::prelude::*;

use super::Session;

impl Session {
    /// Tells of what is armed, and takes it off.
    pub(super) fn disarm(&mut self, py: Python<'_>) {
        self.suspects.finish_trace(py, &mut self.channel);
        self.suspects.finish_peak(py, &mut self.channel);
    }

    /// Nothing is looked into any more.
    pub(super) fn end(&mut self, py: Python<'_>) {
        self.disarm(py);
        self.no_census = true;
    }

    /// Says what was left out because of its price.
    pub(super) fn say_what_was_left_out(&mut self) {
        let known = self.meter.knows();
        if let Some(text) = self.left_out.readings(self.meter.cost()).filter(|_| known) {
            self.note(NoteCode::ReadingsLeftOut, &text);
        }
        let cost = self.census_costs.last().unwrap_or_default();
        if let Some(text) =
            self.left_out.censuses(cost).filter(|_| self.suspects.is_empty() && !self.too_long)
        {
            self.note(NoteCode::CensusesLeftOut, &text);
        }
    }
}
