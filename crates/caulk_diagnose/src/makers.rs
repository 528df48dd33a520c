//! Lines that make what a container keeps: they allocate, the container is why it stays.
//!
//! A line that allocates is a maker of what a found container keeps where it is run in the loop that grows the container,
//! and does not gain many times as much. Knows stacks and source, no bytes of elements.

use caulk_core::wire::HeapFrame;
use caulk_core::{LeakClass, Series, Site, SiteRole};

use crate::claim::{Claim, Witness};
use crate::files::{Files, Source};
use crate::heap::Line;
use crate::process::Process;

/// Times its counted bytes that what a container keeps may come to: views, graphs and C++ objects tell the least of it.
const MOST: f64 = 6.0;

/// What grows a container, and from where in loops that is reached.
pub(crate) struct Keeper {
    bytes_per_unit: f64,
    site: Site,
    places: Vec<(String, Source, Vec<u32>)>,
}

/// The containers found whose line is known, with the loops that reach them.
pub(crate) fn keepers(files: &Files<'_>, process: &Process<'_>, found: &[Claim]) -> Vec<Keeper> {
    let holds = |finding: &&Claim| {
        finding.weighs()
            && finding.witness < Witness::SourcePattern
            && finding.class() != LeakClass::NativeGrowth
    };
    let keeper = |finding: &Claim| {
        let growth = finding.growth.as_ref().filter(|growth| growth.series == Series::InUse)?;
        let site = finding.sites.first().filter(|site| site.role == SiteRole::Grows)?;
        Some(Keeper::new(files, process, growth.bytes_per_unit, site.clone()))
    };
    found.iter().filter(holds).filter_map(keeper).collect()
}

/// First lines of the loops around a site and around the calls of its function, file by file.
fn places(files: &Files<'_>, process: &Process<'_>, site: &Site) -> Vec<(String, Source, Vec<u32>)> {
    let function = site.function.rsplit('.').next().unwrap_or(&site.function);
    let of_file = |path: &str| {
        let source = files.source(path)?;
        let here = (files.display(path) == site.file).then_some(site.line);
        let calls = source.lines().calls(function).into_iter().map(|call| call.spot.line);
        let lines: Vec<u32> = here.into_iter().chain(calls).flat_map(|line| loops(&source, line)).collect();
        (!lines.is_empty()).then(|| (path.to_owned(), source, lines))
    };
    process.files().into_iter().filter_map(of_file).collect()
}

fn loops(source: &Source, line: u32) -> Vec<u32> {
    source.lines().loops_at(line).iter().map(|found| found.spot.line).collect()
}

impl Keeper {
    /// What grows at `site` by so many bytes per unit, as far as its elements tell.
    pub(crate) fn new(files: &Files<'_>, process: &Process<'_>, bytes_per_unit: f64, site: Site) -> Self {
        Self { bytes_per_unit, places: places(files, process, &site), site }
    }

    /// Is it the line itself that grows the container?
    pub(crate) fn is_at(&self, files: &Files<'_>, line: &Line<'_>) -> bool {
        let Site { file, line: first, end_line: last, .. } = &self.site;
        line.judgement.slope <= MOST * self.bytes_per_unit
            && (*first..=*last.max(first)).contains(&line.frame.line)
            && files.display(&line.frame.file) == *file
    }

    /// Is what the line allocates made in a loop that grows the container?
    pub(crate) fn keeps(&self, line: &Line<'_>) -> bool {
        let in_loop = |frame: &HeapFrame| {
            let place = self.places.iter().find(|(path, ..)| *path == frame.file);
            place.is_some_and(|(_, source, known)| {
                loops(source, frame.line).iter().any(|found| known.contains(found))
            })
        };
        line.judgement.slope <= MOST * self.bytes_per_unit
            && line.stacks.iter().all(|stack| stack.frames.iter().any(in_loop))
    }
}
