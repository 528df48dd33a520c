//! What is stored, in a form that keeps less.

use crate::edit::replace;
use crate::lines::Lines;
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};
use crate::value::{Shape, Value};

/// The value without its graph, as a copy, or as a number.
pub(super) fn values(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let whole = !matches!(
        site.kind,
        GrowKind::Register | GrowKind::Write | GrowKind::Extend | GrowKind::Update | GrowKind::Heap
    );
    let Some(value) = site.value.as_ref().filter(|_| whole) else { return Vec::new() };
    if let Shape::Members(members) = &value.shape {
        return of_members(file, site, members);
    }
    if site.collection {
        return Vec::new();
    }
    let constant = value.text.parse::<f64>().is_ok();
    if constant || matches!(value.shape, Shape::Each(_) | Shape::Spread | Shape::Callable | Shape::Guarded) {
        return Vec::new();
    }
    let callable = value.callable_text();
    let forms = [
        format!("{callable}.detach()"),
        format!("{callable}.detach().clone()"),
        format!("float({})", value.text),
    ];
    let known = |form: &String| value.text.ends_with(".detach()") && form.ends_with(".detach()");
    let forms = forms.into_iter().filter(|form| !known(form));
    let fix = |form: String| EditTry {
        kind: TryKind::Value,
        description: format!("Store `{form}` in `{}`.", site.container),
        edits: vec![replace(file, value.range, form)],
    };
    forms.map(fix).collect()
}

/// The variables of a tuple, list or dict, each without its graph.
fn of_members(file: &Lines<'_>, site: &GrowSite, members: &[Value]) -> Vec<EditTry> {
    let variables: Vec<&Value> = members.iter().filter(|member| member.shape == Shape::Variable).collect();
    let detached = |value: &&Value| replace(file, value.range, format!("{}.detach()", value.text));
    let all = variables.iter().map(detached).collect();
    let together = EditTry {
        kind: TryKind::Value,
        description: format!("Store what goes into `{}` without graphs.", site.container),
        edits: all,
    };
    let each = variables.iter().map(|value| EditTry {
        kind: TryKind::Value,
        description: format!("Store `{}.detach()` in `{}`.", value.text, site.container),
        edits: vec![detached(value)],
    });
    std::iter::once(together).chain(each).collect()
}
