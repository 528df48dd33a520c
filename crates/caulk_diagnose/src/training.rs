//! Training errors that the agent met on its way and that cost no memory: gradients that are never cleared.

use caulk_core::{Confidence, Evidence, Finding, LeakClass, Severity, SiteRole};
use caulk_python::{Facts, Owner};

use crate::files::Files;
use crate::fix;
use crate::place::Located;
use crate::process::Process;

/// Backward passes that must all have started with gradients left over.
const LOOKS: u64 = 10;

/// Backward passes that start with the gradients of the step before.
pub(crate) fn findings(files: &Files<'_>, process: &Process<'_>) -> Vec<Finding> {
    let stale =
        process.backwards.iter().filter(|site| site.checked >= LOOKS && site.stale_gradients == site.checked);
    stale
        .map(|site| {
            let class = LeakClass::GradientsNeverCleared;
            let statement = files.source(&site.file).and_then(|source| Some((source.lines().statement_at(site.line)?, source)));
            let located = statement.map(|(statement, source)| Located {
                container: source
                    .lines()
                    .calls("backward")
                    .into_iter()
                    .find(|call| statement.spot.covers(call.spot.line))
                    .map_or_else(|| "backward".into(), |call| call.callee),
                spot: statement.spot,
                path: site.file.clone(),
                grow: None,
                confidence: Confidence::Proved,
                facts: Facts::default(),
                name: String::new(),
                owner: Owner::Any,
                traced: None,
                also_at: Vec::new(),
 library: None,
                source,
            });
            Finding {
                confidence: Confidence::Proved,
                severity: Severity::Warning,
                message: "every backward pass adds to the gradients of the steps before, because nothing clears them: a \
                          training error; memory does not grow"
                    .into(),
                sites: located
                    .iter()
                    .map(|located| located.spot.site(&files.display(&located.path), SiteRole::Grows))
                    .collect(),
                container: located.as_ref().map_or_else(|| "backward".into(), |located| located.container.clone()),
                process: process.reference(),
                evidence: vec![Evidence {
                    kind: "gradients".into(),
                    text: format!(
                        "{} of {} backward passes after an optimizer step began with gradients other than zero",
                        site.stale_gradients, site.checked
                    ),
                }],
                fix: Some(fix::of(class, located.as_ref(), "grad")),
                ..Finding::of(class)
            }
        })
        .collect()
}
