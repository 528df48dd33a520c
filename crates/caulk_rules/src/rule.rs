//! What a rule is.

use caulk_core::{LeakClass, Severity};

use crate::context::Context;
use crate::grades::ClassGrade;

/// One leak pattern that source can show.
#[derive(Debug)]
pub struct Rule {
    /// Its name, group and summary.
    pub class: LeakClass,
    /// Whether it is selected unless the user says otherwise.
    pub default: bool,
    /// Its page, in Markdown: for the user, and the rule's test.
    pub explanation: &'static str,
    pub(crate) check: fn(&mut Context<'_>),
}

impl Rule {
    /// The highest severity of its findings.
    pub fn severity(&self) -> Severity {
        ClassGrade::of(self.class).map_or(Severity::Info, |grade| grade.highest)
    }
}
