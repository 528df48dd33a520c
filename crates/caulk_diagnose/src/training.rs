//! Training errors that the agent met on its way and that cost no memory: gradients that are never cleared.

use caulk_core::{Cause, Evidence, SiteRole};

use crate::claim::{Observed, Standing, Witness};
use crate::files::Files;
use crate::place::Located;
use crate::process::Process;
use crate::remedy;

/// Backward passes that must all have started with gradients left over.
const LOOKS: u64 = 10;

/// Backward passes that start with the gradients of the step before.
pub(crate) fn findings(files: &Files<'_>, process: &Process<'_>) -> Vec<Observed> {
    let stale =
        process.backwards.iter().filter(|site| site.checked >= LOOKS && site.stale_gradients == site.checked);
    stale
        .map(|site| {
            let statement = files
                .source(&site.file)
                .and_then(|source| Some((source.lines().statement_at(site.line)?, source)));
            let located = statement.map(|(statement, source)| {
                let container = source
                    .lines()
                    .calls("backward")
                    .into_iter()
                    .find(|call| statement.spot.covers(call.spot.line))
                    .map_or_else(|| "backward".into(), |call| call.callee);
                Located::at(source, site.file.clone(), statement.spot, container, Witness::Exact)
            });
            Observed {
                witness: Witness::Exact,
                standing: Standing::Whole,
                sites: located
                    .iter()
                    .map(|located| located.spot.site(&files.display(&located.path), SiteRole::Grows))
                    .collect(),
                container: located
                    .as_ref()
                    .map_or_else(|| "backward".into(), |located| located.container.clone()),
                process: process.reference(),
                evidence: vec![Evidence::Gradients { stale: site.stale_gradients, checked: site.checked }],
                remedy: Some(remedy::of_cause(&Cause::StaleGradients, located.as_ref(), "grad")),
                ..Observed::of(Cause::StaleGradients)
            }
        })
        .collect()
}
