//! A place in source at which something grows, with what is known of it.

use caulk_core::{Link, LinkEvent, Place, Site, SiteRole};
use caulk_python::{Facts, GrowSite, Owner, Spot};

use crate::claim::Witness;
use crate::files::{Files, Source};
use crate::reached::Reached;

/// Where something grows.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) source: Source,
    /// File name as the program has it.
    pub(crate) path: String,
    pub(crate) spot: Spot,
    /// The container as the line writes it.
    pub(crate) container: String,
    pub(crate) grow: Option<GrowSite>,
    pub(crate) witness: Witness,
    pub(crate) facts: Facts,
    /// Name under which the source was searched, and whose it is.
    pub(crate) name: String,
    pub(crate) owner: Owner,
    /// The armed trace saw it at this line.
    pub(crate) traced: Option<(u64, u32)>,
    /// Other lines at which the armed trace saw it.
    pub(crate) also_at: Vec<Place>,
    /// The statement of a library that grows it, reached by the call at this line.
    pub(crate) library: Option<Reached>,
}

impl Located {
    /// A line with no other facts known.
    pub(crate) fn at(source: Source, path: String, spot: Spot, container: String, witness: Witness) -> Self {
        Self {
            source,
            path,
            spot,
            container,
            grow: None,
            witness,
            facts: Facts::default(),
            name: String::new(),
            owner: Owner::Any,
            traced: None,
            also_at: Vec::new(),
            library: None,
        }
    }

    pub(crate) fn site(&self, files: &Files<'_>) -> Site {
        self.spot.site(&files.display(&self.path), SiteRole::Grows)
    }

    /// All lines to look at: where the call of the program's is not what grows it, the library's second.
    pub(crate) fn sites(&self, files: &Files<'_>) -> Vec<Site> {
        let library = self.library.iter().map(|reached| reached.site(files));
        std::iter::once(self.site(files)).chain(library).collect()
    }

    /// Does the line register a hook of torch's?
    pub(crate) fn registers_hook(&self) -> bool {
        let hooks = REGISTERING.iter().filter(|name| name.ends_with("_hook"));
        let calls = hooks.flat_map(|name| self.source.lines().calls(name));
        calls.into_iter().any(|call| self.spot.covers(call.spot.line))
    }

    /// Does the line bind a container anew, with more in it?
    pub(crate) fn adds_elements(&self) -> bool {
        self.grow.as_ref().is_some_and(GrowSite::adds_elements)
    }

    /// Other lines that were seen to grow it, and that grow the same name, or elements of it where one grew here.
    pub(crate) fn twins(&self, files: &Files<'_>) -> Vec<Place> {
        let sites = self.source.lines().grow_sites_of(&self.name, &self.owner);
        let element = self.grow.as_ref().is_some_and(|grow| grow.element);
        let others = sites
            .into_iter()
            .filter(|site| site.kind.grows() && site.element == element && !self.spot.covers(site.spot.line));
        let file = files.display(&self.path);
        let others =
            others.map(|site| Place { file: file.clone(), line: site.spot.line, text: site.spot.text });
        let mut twins = self.also_at.clone();
        // A figure that is closed again where it is made was seen to be added, but it does not stay.
        let stays = |line: u32| self.source.lines().close_figure_fix(line).is_some();
        if stays(self.spot.line) {
            twins.retain(|twin| twin.file != file || stays(twin.line));
        }
        others.for_each(|other| add_place(&mut twins, other));
        twins
    }

    /// Where the container is made, and where it grows.
    pub(crate) fn chain(&self, files: &Files<'_>) -> Vec<Link> {
        let file = files.display(&self.path);
        let step = |spot: &Spot, event: LinkEvent| Link {
            file: file.clone(),
            line: spot.line,
            text: spot.text.clone(),
            event,
        };
        let made = self.source.lines().creations_of(&self.name, &self.owner).into_iter().next();
        let event = if self.library.is_some() { LinkEvent::CallsGrower } else { LinkEvent::Grows };
        let mut chain = Vec::new();
        if let Some(made) = made.filter(|made| made.spot.line != self.spot.line) {
            chain.push(step(&made.spot, LinkEvent::Makes { target: made.target, bound: made.bound }));
        }
        chain.push(step(&self.spot, event));
        chain.extend(self.library.iter().map(|reached| reached.step(files)));
        chain.extend(self.grow.iter().flat_map(|grow| &grow.via).map(|spot| step(spot, LinkEvent::Calls)));
        chain
    }
}

/// Adds a place that is not there yet.
pub(super) fn add_place(places: &mut Vec<Place>, place: Place) {
    if !places.iter().any(|known| (&known.file, known.line) == (&place.file, place.line)) {
        places.push(place);
    }
}

/// Calls through which libraries keep what they are given, or make what they keep.
pub(super) const REGISTERING: [&str; 19] = [
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "register_step_post_hook",
    "register_step_pre_hook",
    "figure",
    "subplots",
    "subplot",
    "gcf",
    "add_subplot",
    "submit",
    "apply_async",
    "map_async",
    "run_in_executor",
    "call_soon_threadsafe",
];
