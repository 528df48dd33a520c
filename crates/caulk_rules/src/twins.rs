//! Places that share the cause of a finding: who mends one will want to see the others.
//!
//! The same container grown by several lines that are no one story, or the same function of a library called in
//! several places.

use std::ops::{Deref, DerefMut};

use caulk_core::{Diagnostic, MOST_TWINS, Place, Site};
use caulk_python::program::{Holder, Symbol};

use crate::grades::ClassGrade;
use crate::weight::Weight;

/// What a finding is due to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Something that outlives functions holds on.
    Held(Holder),
    /// A function of a library is called.
    Called(Symbol),
}

impl Cause {
    /// A variable of a function has nothing to do with those of others.
    pub(crate) fn held(holder: Holder) -> Option<Self> {
        (holder != Holder::Local).then_some(Self::Held(holder))
    }
}

/// A finding, with what it is due to where others may be due to the same.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) diagnostic: Diagnostic,
    pub(crate) cause: Option<Cause>,
    /// What one entry costs.
    pub(crate) weight: Weight,
}

impl Deref for Found {
    type Target = Diagnostic;

    fn deref(&self) -> &Diagnostic {
        &self.diagnostic
    }
}

impl DerefMut for Found {
    fn deref_mut(&mut self) -> &mut Diagnostic {
        &mut self.diagnostic
    }
}

impl Found {
    /// Derives its severity from its proof and the row of its class. Nothing else decides it.
    pub(crate) fn settle(&mut self) {
        let Some(grade) = ClassGrade::of(self.class) else { return };
        self.severity = if grade.by_proof {
            self.proof.severity().min(grade.ceiling(self.scope, self.weight))
        } else {
            grade.highest
        };
    }
}

/// Names each finding's twins.
pub(crate) fn named(found: Vec<Found>) -> Vec<Diagnostic> {
    let twins: Vec<(Vec<Place>, usize)> = found.iter().map(|one| twins_of(one, &found)).collect();
    let named = found.into_iter().zip(twins);
    named.map(|(found, (twins, more_twins))| Diagnostic { twins, more_twins, ..found.diagnostic }).collect()
}

/// The first ones, and how many more there are.
fn twins_of(one: &Found, all: &[Found]) -> (Vec<Place>, usize) {
    let own = |place: &Site| {
        one.diagnostic.sites.iter().any(|site| site.file == place.file && site.line == place.line)
    };
    let same = |other: &&Found| {
        one.cause.is_some() && other.cause == one.cause && other.diagnostic.class == one.diagnostic.class
    };
    let sites = all.iter().filter(same).filter_map(|other| other.diagnostic.sites.first());
    let mut sites = sites.filter(|site| !own(site));
    let place = |site: &Site| Place { file: site.file.clone(), line: site.line, text: site.text.clone() };
    let first = sites.by_ref().take(MOST_TWINS).map(place).collect();
    (first, sites.count())
}
