//! Where the source stores what a line makes, for lines that allocate what stays and whose container the run did not find:
//! entries that longer ones replace, dicts in a thousand places.

use caulk_core::{LeakClass, Site, SiteRole};
use caulk_python::{GrowKind, GrowSite, Holder};

use crate::claim::{Claim, Relation, Relations, Stored};
use crate::files::Files;
use crate::process::Process;

/// Lines below the one that allocates among which the one that stores is looked for.
const NEAR: u32 = 30;
/// Libraries and methods of statements that make tensors and arrays. Others may make what a library has to be asked to give
/// back.
const LIBRARIES: [&str; 3] = ["torch", "numpy", "np"];
const MAKERS: [&str; 4] = ["clone", "copy", "cat", "stack"];

/// What stores the value that such a line makes, if the source shows it.
pub(crate) fn relations<'a>(files: &Files<'_>, process: &Process<'_>, claims: &[Claim]) -> Relations<'a> {
    let lines = claims.iter().enumerate().filter(|(_, claim)| claim.class() == LeakClass::NativeGrowth);
    let stored = |(at, claim): (usize, &Claim)| {
        let (made, rate) = (claim.sites.first()?, claim.growth.as_ref()?.rate());
        let GrowSite { container, spot, .. } = storing(files, process, made)?;
        let statement = spot.site(&made.file, SiteRole::Grows);
        Some((at, Relation::Stored(Stored { container, rate, statement })))
    };
    lines.filter_map(stored).collect()
}

fn storing(files: &Files<'_>, process: &Process<'_>, made: &Site) -> Option<GrowSite> {
    let mut frames = process.stacks.values().flat_map(|stack| &stack.frames);
    let frame = frames.find(|frame| frame.line == made.line && files.display(&frame.file) == made.file)?;
    let source = files.source(&frame.file)?;
    let (path, line) = (made.file.clone(), made.line);
    let statement = source.lines().statement_at(line)?;
    let made = statement.spot;
    let of_library = source.lines().libraries_at(line).iter().any(|name| LIBRARIES.contains(&name.as_str()));
    let by_maker = || source.lines().called_at(line).iter().any(|name| MAKERS.contains(&name.as_str()));
    if !of_library && !by_maker() {
        return None;
    }
    let function = source.lines().function_at(made.line);
    let is_main = |line: u32| {
        process.loops.iter().any(|found| found.line == line && files.display(&found.file) == path)
    };
    let goes_on = |line: u32| source.lines().loops_at(line).iter().any(|found| is_main(found.spot.line));
    let stores = |site: &GrowSite| {
        // A variable of the function is gone with it, unless that is the one with the loop that the program goes on in;
        // and what is written into a part of something is copied there.
        let goes_on = || site.kind != GrowKind::Rebind && goes_on(site.spot.line);
        let outlives = site.kind != GrowKind::SliceAssign && (site.holder != Holder::Local || goes_on());
        let unbounded = || !source.lines().facts(&site.container, &site.spot.function).bounded();
        let names_it = || {
            let mut names = site.value.iter().flat_map(|value| &value.names);
            names.any(|name| statement.binds.contains(name))
        };
        // Of a number that was computed of it (`losses.append(loss.item())`) nothing could be detached.
        let keeps_it = || source.lines().detach_fix(site).is_some();
        site.kind.grows()
            && outlives
            && (site.spot.line == made.line || names_it())
            && keeps_it()
            && unbounded()
    };
    (made.line..made.line + NEAR)
        .take_while(|number| source.lines().line(*number).is_some())
        .filter(|number| source.lines().function_at(*number) == function)
        .find_map(|number| source.lines().grows_at(number).into_iter().find(|site| stores(site)))
}
