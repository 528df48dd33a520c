//! Claims about graphs that get longer, each cause once.

use caulk_core::LeakClass;
use caulk_python::Analysis;
use caulk_python::program::{CarryCase, CarryFact, Holder};
use ruff_python_ast::{Expr, Stmt};

use crate::exposure::Exposure;
use crate::source::statement_at;

/// A variable, attribute or entry whose graph gets longer.
#[derive(Debug)]
pub(crate) struct CarryClaim {
    pub(crate) class: LeakClass,
    pub(crate) carry: CarryFact,
    /// The worst of its cases.
    pub(crate) case: CarryCase,
    pub(crate) exposure: Exposure,
}

/// The claims without those about copies, and the worst of those about one place in source.
///
/// One statement binds the same attribute of several objects.
pub(crate) fn settled(
    analysis: &Analysis,
    carried: &[CarryFact],
    claims: Vec<CarryClaim>,
) -> Vec<CarryClaim> {
    let copies: Vec<bool> =
        claims.iter().map(|claim| only_copies(analysis, claim, carried, &claims)).collect();
    let mut found: Vec<CarryClaim> = Vec::new();
    for (claim, copies) in claims.into_iter().zip(copies) {
        let same = |known: &&mut CarryClaim| known.carry.target == claim.carry.target;
        match found.iter_mut().find(same) {
            _ if copies => {}
            None => found.push(claim),
            Some(known) if is_worse(&claim, known) => *known = claim,
            Some(_) => {}
        }
    }
    found
}

/// A sum is the clearer cause beside a state that is fed back.
fn is_worse(claim: &CarryClaim, known: &CarryClaim) -> bool {
    if claim.exposure == known.exposure {
        return known.class == LeakClass::StateNotDetached;
    }
    known.exposure.worse(claim.exposure) == claim.exposure
}

/// `self.last = self.state`, where the graph of `state` does not get longer: what is copied is made again in each turn.
fn only_copies(
    analysis: &Analysis,
    claim: &CarryClaim,
    carried: &[CarryFact],
    claims: &[CarryClaim],
) -> bool {
    let Some(Stmt::Assign(assign)) = statement_at(analysis.project(), claim.carry.statement) else {
        return false;
    };
    let Expr::Attribute(copied) = &*assign.value else { return false };
    let is_copied = |carry: &CarryFact| {
        carry.target != claim.carry.target
            && matches!(analysis.holder_of(carry.place), Holder::Attribute(_, name) if analysis.name(name) == copied.attr.as_str())
    };
    carried.iter().any(is_copied) && !claims.iter().any(|other| is_copied(&other.carry))
}
