//! Memory that is freed at the end of its phase, but whose high-water mark is needless: graphs kept in a local list.

use caulk_core::wire::{ContainerKind, Contents, Holder, Peak, Trait};
use caulk_core::{Cause, Evidence, Scope, SiteRole};
use caulk_python::{GrowSite, Owner};

use crate::claim::{Observed, Standing, Witness};
use crate::files::Files;
use crate::process::Process;
use crate::{pinned, place, remedy, suspect};

/// How far a peak must stand above the baseline: in bytes, and as a share of it.
const RISE: u64 = 64 << 20;
const SHARE: u64 = 4;

/// Containers with graphs that were full at a peak, one finding for each.
pub(crate) fn findings(files: &Files<'_>, process: &Process<'_>) -> Vec<Observed> {
    let mut findings: Vec<Observed> = Vec::new();
    for peak in &process.peaks {
        let rise = peak.in_use_bytes.saturating_sub(peak.baseline_bytes);
        if rise < RISE || rise < peak.baseline_bytes / SHARE {
            continue;
        }
        for id in &peak.ids {
            let (Some(holder), Some(contents)) = (process.holders.get(id), process.contents.get(id)) else {
                continue;
            };
            let Some(contents) = contents.last().filter(|contents| contents.traits.contains(&Trait::Graph))
            else {
                continue;
            };
            let len =
                process.lengths.get(id).and_then(|lengths| lengths.last()).map_or(0, |length| length.len);
            if contents.bytes_per_element * len < rise / 4 {
                continue;
            }
            let found = finding(files, process, peak, holder, contents, len);
            let known = |other: &Observed| other.holder == found.holder && other.sites == found.sites;
            if !findings.iter().any(known) {
                findings.push(found);
            }
        }
    }
    findings
}

fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    peak: &Peak,
    holder: &Holder,
    contents: &Contents,
    len: u64,
) -> Observed {
    let owner = Owner::Function(holder.function.clone());
    let source = files.source(&holder.file);
    let mut sites: Vec<GrowSite> =
        source.iter().flat_map(|source| source.lines().grow_sites_of(&holder.name, &owner)).collect();
    sites.retain(|site| site.kind.grows() && !site.element);
    let certain = sites.len() == 1;
    let located = sites.into_iter().next().zip(source).map(|(site, source)| place::Located {
        facts: source.lines().facts_of(&holder.name, &owner),
        spot: site.spot.clone(),
        container: site.container.clone(),
        path: holder.file.clone(),
        grow: Some(site),
        witness: Witness::OnlyLine,
        name: holder.name.clone(),
        owner,
        traced: None,
        also_at: Vec::new(),
        library: None,
        source,
    });
    let held = contents.bytes_per_element * len;
    let container =
        located.as_ref().map_or_else(|| holder.expression.clone(), |located| located.container.clone());
    let cause = Cause::Peak {
        container: container.clone(),
        held,
        elements: len,
        high: peak.in_use_bytes,
        base: peak.baseline_bytes,
        function: holder.function.clone(),
    };
    Observed {
        witness: if certain { Witness::OnlyLine } else { Witness::Signs },
        scope: Scope::Epoch,
        standing: Standing::Whole,
        sites: located
            .iter()
            .map(|located| located.spot.site(&files.display(&located.path), SiteRole::Grows))
            .collect(),
        container,
        holder: holder.expression.clone(),
        holder_path: suspect::path(holder, ContainerKind::List),
        chain: located.as_ref().map_or_else(Vec::new, |located| located.chain(files)),
        process: process.reference(),
        pinned: Some(pinned::by_sample(contents, len)),
        evidence: vec![Evidence::Peak {
            bytes: peak.in_use_bytes,
            file: files.display(&peak.file),
            line: peak.line,
            function: peak.function.clone(),
        }],
        remedy: Some(remedy::of_cause(&cause, located.as_ref(), &holder.name)),
        ..Observed::of(cause)
    }
}
