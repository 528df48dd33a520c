//! Python objects in a data set that forked workers copy page by page when they read them.

use caulk_core::{LeakClass, Scope, Severity};
use caulk_python::Location;
use caulk_python::program::{
    CallFact, GrowthFact, Kinds, Literal, LoopKind, Object, ObjectId, Root, Shape, Symbol, Value,
};

use crate::advice::advice;
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::WorkerCopyOnWrite,
    severity: Severity::Warning,
    default: true,
    explanation: include_str!("worker_copy_on_write.md"),
    check,
};

/// A large container of Python objects in a data set.
struct Shared {
    at: Location,
    container: String,
    loader: CallFact,
}

fn check(cx: &mut Context<'_>) {
    let growths = cx.analysis.growths();
    let mut found: Vec<Shared> = Vec::new();
    for loader in cx.analysis.calls(&["torch.utils.data.DataLoader"]) {
        if loader.root == Root::Test || !has_workers(cx, &loader) {
            continue;
        }
        for data in loader.argument.objects.iter() {
            for shared in large_containers(cx, data, growths, &loader) {
                if found.iter().all(|known| known.at != shared.at) {
                    found.push(shared);
                }
            }
        }
    }
    for shared in &found {
        report(cx, shared);
    }
}

pub(crate) fn has_workers(cx: &Context<'_>, loader: &CallFact) -> bool {
    let workers = loader.argument(cx.analysis, Some(5), "num_workers");
    workers.is_some_and(|workers| matches!(workers.literal, Literal::Int(number) if number > 0))
}

fn large_containers(
    cx: &Context<'_>,
    data: ObjectId,
    growths: &[GrowthFact],
    loader: &CallFact,
) -> Vec<Shared> {
    let owner = cx.analysis.object(data);
    if !matches!(owner.shape, Shape::Instance(_)) {
        return Vec::new();
    }
    let mut fields: Vec<(Symbol, Value)> = owner.fields.iter().map(|(name, value)| (*name, *value)).collect();
    fields.sort_by_key(|(name, _)| *name);
    let mut found = Vec::new();
    for (name, value) in fields {
        for id in value.objects.iter() {
            let object = cx.analysis.object(id);
            if !matches!(object.shape, Shape::List | Shape::Dict | Shape::Set)
                || !holds_objects(&object.elements)
            {
                continue;
            }
            if let Some(at) = filled_in_a_loop(cx, id, object, growths) {
                let container = format!("self.{}", cx.analysis.name(name));
                found.push(Shared { at, container, loader: loader.clone() });
            }
        }
    }
    found
}

/// Text, numbers, tuples, dicts: each with a reference count that reading it writes.
fn holds_objects(elements: &Value) -> bool {
    const OBJECTS: Kinds = Kinds::TEXT.with(Kinds::NUMBER).with(Kinds::OBJECT);
    elements.only(OBJECTS.with(Kinds::NONE).with(Kinds::UNKNOWN)) && elements.kinds.has(OBJECTS)
}

/// Where a container gets as long as the data: by a comprehension or a loop over something long.
fn filled_in_a_loop(
    cx: &Context<'_>,
    id: ObjectId,
    object: &Object,
    growths: &[GrowthFact],
) -> Option<Location> {
    let long = |kind: LoopKind| !matches!(kind, LoopKind::Times(_) | LoopKind::Parts | LoopKind::Folds);
    let made = object.at?;
    if matches!(crate::source::expression_at(cx.project(), made), Some(expr) if is_comprehension(expr))
        && cx.analysis.loops_in(made).all(|inner| long(inner.kind))
    {
        return Some(made);
    }
    growths.iter().find_map(|growth| {
        let grown = growth.cases.iter().any(|case| {
            let inner = case.duration.growing.last();
            case.object == id
                && inner.is_some_and(|inner| {
                    let a_loop = cx.analysis.a_loop(*inner);
                    // A framework's loops ask for samples; they do not fill the index.
                    a_loop.at.is_some() && long(a_loop.kind)
                })
        });
        grown.then_some(growth.container)
    })
}

fn is_comprehension(expr: &ruff_python_ast::Expr) -> bool {
    expr.is_list_comp_expr() || expr.is_dict_comp_expr() || expr.is_set_comp_expr()
}

fn report(cx: &mut Context<'_>, shared: &Shared) {
    let container = &shared.container;
    let message = format!(
        "`{container}` holds as many Python objects as there are samples: reading one writes its reference count, so every forked worker copies them all in time"
    );
    let chain = vec![
        cx.link(shared.at, "one Python object after another, side by side with what never changes"),
        cx.link(shared.loader.at, "these workers start as copies that share its memory"),
    ];
    let function = cx.function_around(shared.at);
    let diagnostic = cx.report(shared.at, &function, message);
    diagnostic.container.clone_from(container);
    diagnostic.scope = Scope::Run;
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Keep the index in few large buffers: numpy arrays, one `bytes` with offsets, pyarrow, a memory-mapped file.",
    );
}
