//! Assignments that join the old value of their target with something else through variables:
//! `rows = torch.cat([x.rows, new]); x.rows = rows`, `old = x.rows; x.rows = torch.cat([old, new])`.

use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{self as ast, Expr};
use rustc_hash::FxHashMap;

use crate::flow::joined::{is_same, parts, whole};

/// Places of one value that are followed.
const MAX_PLACES: usize = 8;

/// What a value has in it.
#[derive(Debug, Clone, Default)]
struct Whole<'p> {
    /// Places, by the expressions that read them, whose whole values are in it.
    places: Vec<&'p Expr>,
    /// The expression that put something to them, if one did.
    join: Option<&'p Expr>,
}

/// What the variables of one function have in them, up to the statement that is read.
#[derive(Debug, Default)]
pub(super) struct Wholes<'p> {
    bound: FxHashMap<&'p str, Whole<'p>>,
}

impl<'p> Wholes<'p> {
    /// A target is bound to a value.
    pub(super) fn bind(&mut self, target: &'p Expr, value: &'p Expr) {
        if let Expr::Name(name) = target {
            let whole = self.of(value);
            self.bound.insert(name.id.as_str(), whole);
        }
    }

    /// The expression that joins the old value of a target with something else, where a value comes from one.
    pub(super) fn join(&self, target: &Expr, value: &'p Expr) -> Option<&'p Expr> {
        let Whole { places, join } = self.of(value);
        join.filter(|_| places.iter().any(|place| is_same(target, place) || is_entry(target, place)))
    }

    fn of(&self, value: &'p Expr) -> Whole<'p> {
        let value = whole(value);
        let joined = parts(value);
        if !joined.is_empty() {
            let places = joined.into_iter().flat_map(|part| self.of(part).places);
            let places = places.take(MAX_PLACES).collect();
            return Whole { places, join: Some(value) };
        }
        match value {
            Expr::Name(name) => {
                let mut known = self.bound.get(name.id.as_str()).cloned().unwrap_or_default();
                known.places.insert(0, value);
                known.places.truncate(MAX_PLACES);
                known
            }
            Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) => {
                Whole { places: vec![value], join: None }
            }
            Expr::If(choice) => {
                let (body, orelse) = (self.of(&choice.body), self.of(&choice.orelse));
                let places = body.places.into_iter().chain(orelse.places).take(MAX_PLACES).collect();
                Whole { places, join: body.join.or(orelse.join) }
            }
            _ => Whole::default(),
        }
    }
}

/// Whether an expression reads a target that is an entry of a dict: `d.get(k, new)` for `d[k]`.
fn is_entry(target: &Expr, value: &Expr) -> bool {
    let (Expr::Subscript(entry), Expr::Call(call)) = (target, value) else { return false };
    let (Expr::Attribute(ast::ExprAttribute { value: dict, attr, .. }), Some(key)) =
        (&*call.func, call.arguments.args.first())
    else {
        return false;
    };
    let same = |left: &Expr, right: &Expr| ComparableExpr::from(left) == ComparableExpr::from(right);
    matches!(attr.as_str(), "get" | "setdefault") && same(dict, &entry.value) && same(key, &entry.slice)
}
