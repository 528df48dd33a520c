//! A logging handler that keeps the records it gets.

use caulk_core::{LeakClass, Severity};

use crate::container::{Told, bound, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::LogRecordsKept,
    severity: Severity::Warning,
    default: true,
    explanation: include_str!("log_records_kept.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "`{}` keeps every log record with all that was passed to the logger: it grows whenever something is logged",
            cx.text(kept.growth.container)
        );
        Some(Told {
            severity: Severity::Warning,
            message,
            note: "the whole record is stored",
            fix: bound(cx, kept),
        })
    });
}
