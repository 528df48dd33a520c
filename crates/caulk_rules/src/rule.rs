//! What a rule is.

use caulk_core::{LeakClass, Severity};

use crate::context::Context;

/// One leak pattern that source can show.
#[derive(Debug)]
pub struct Rule {
    /// Its name, group and summary.
    pub class: LeakClass,
    /// Severity where nothing speaks for another.
    pub severity: Severity,
    /// Whether it is selected unless the user says otherwise.
    pub default: bool,
    /// Its page, in Markdown: for the user, and the rule's test.
    pub explanation: &'static str,
    pub(crate) check: fn(&mut Context<'_>),
}
