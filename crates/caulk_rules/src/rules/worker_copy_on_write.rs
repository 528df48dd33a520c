//! Python objects in a data set that forked workers copy page by page when they read them.

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::Location;
use caulk_python::program::{
    CallFact, ClassId, GrowthFact, Kinds, Literal, Loop, LoopKind, Object, ObjectId, Root, Shape, Symbol,
    Value,
};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Operator, Stmt, StmtFunctionDef};

use crate::advice::advice;
use crate::context::Context;
use crate::rule::Rule;
use crate::source::last_name;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::WorkerCopyOnWrite,
    default: true,
    explanation: include_str!("worker_copy_on_write.md"),
    check,
};

/// What a sample is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// A text or a number.
    One,
    /// A tuple of these, such as a path and its label.
    Few,
    /// A dict, an object, a tuple in a tuple, a value of a file in JSON.
    Several,
}

/// A large container of Python objects in a data set.
struct Shared {
    at: Location,
    /// The class of the data set.
    class: ClassId,
    container: String,
    loader: CallFact,
    pieces: Pieces,
    /// The program itself has the number of samples, and it is large.
    many: bool,
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
                let same = |known: &Shared| {
                    known.at == shared.at
                        || known.class == shared.class && known.container == shared.container
                };
                if !found.iter().any(same) {
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
    let Shape::Instance(class) = owner.shape else { return Vec::new() };
    let mut fields: Vec<(Symbol, Value)> = owner.fields.iter().map(|(name, value)| (*name, *value)).collect();
    fields.sort_by_key(|(name, _)| *name);
    let mut found = Vec::new();
    for (name, value) in fields {
        if !is_asked_by_sample(cx, class, cx.analysis.name(name)) {
            continue;
        }
        for id in value.objects.iter() {
            let object = cx.analysis.object(id);
            if !matches!(object.shape, Shape::List | Shape::Dict | Shape::Set) {
                continue;
            }
            let read = read_in_one_piece(cx, object);
            let filled = read.map(|(at, _)| (at, false)).or_else(|| {
                holds_objects(&object.elements).then(|| filled_in_a_loop(cx, id, object, growths)).flatten()
            });
            let pieces = match read {
                Some((_, pieces)) => pieces,
                None => pieces_of(cx, &object.elements),
            };
            if let Some((at, many)) = filled {
                let container = format!("self.{}", cx.analysis.name(name));
                found.push(Shared { at, class, container, loader: loader.clone(), pieces, many });
            }
        }
    }
    found
}

/// Methods of a class and of its bases are searched, this deep.
const DEEPEST: usize = 8;

/// Whether an attribute has an element for each sample: `__len__` gives its length, or it is asked with the index of
/// `__getitem__` itself. A table of classes, or of files of many samples each, has few.
fn is_asked_by_sample(cx: &Context<'_>, class: ClassId, attribute: &str) -> bool {
    let mut classes = vec![class];
    for _ in 0..DEEPEST {
        let Some(class) = classes.pop() else { break };
        let fact = cx.analysis.class(class);
        let asks = fact.methods.values().any(|method| {
            let at = cx.analysis.function(*method).at;
            let Some(Stmt::FunctionDef(method)) = crate::source::statement_at(cx.project(), at) else {
                return false;
            };
            let mut asks = Asks {
                attribute,
                measures: method.name.as_str() == "__len__",
                index: index_of(method),
                found: false,
            };
            asks.visit_body(&method.body);
            asks.found
        });
        if asks {
            return true;
        }
        classes.extend(&fact.bases);
    }
    false
}

/// The parameter after `self` of `__getitem__`.
fn index_of(method: &StmtFunctionDef) -> Option<&str> {
    let is_it = matches!(method.name.as_str(), "__getitem__" | "__getitems__");
    method.parameters.iter().nth(1).filter(|_| is_it).map(|parameter| parameter.name().as_str())
}

/// Looks for `len(self.x)` and `self.x[index]`.
struct Asks<'n> {
    attribute: &'n str,
    /// This is `__len__`.
    measures: bool,
    index: Option<&'n str>,
    found: bool,
}

impl Asks<'_> {
    fn is_it(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Attribute(attribute) if attribute.attr.as_str() == self.attribute)
    }
}

impl<'a> Visitor<'a> for Asks<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        self.found |= match expr {
            Expr::Call(call) => {
                self.measures
                    && last_name(&call.func) == Some("len")
                    && call.arguments.args.first().is_some_and(|arg| self.is_it(arg))
            }
            Expr::Subscript(subscript) => {
                let index = subscript.slice.as_name_expr().map(|name| name.id.as_str());
                self.is_it(&subscript.value) && index.is_some() && index == self.index
            }
            _ => false,
        };
        visitor::walk_expr(self, expr);
    }
}

/// Text, numbers, tuples, dicts: each with a reference count that reading it writes.
fn holds_objects(elements: &Value) -> bool {
    const OBJECTS: Kinds = Kinds::TEXT.with(Kinds::NUMBER).with(Kinds::OBJECT);
    elements.only(OBJECTS.with(Kinds::NONE).with(Kinds::UNKNOWN)) && elements.kinds.has(OBJECTS)
}

/// How many objects each element is. Beside an array in it, the objects are next to nothing.
fn pieces_of(cx: &Context<'_>, elements: &Value) -> Pieces {
    let kinds = cx.analysis.contents(elements).kinds;
    if elements.objects.is_empty() && !elements.kinds.has(Kinds::OBJECT)
        || kinds.has(Kinds::ARRAY.with(Kinds::TENSOR))
    {
        return Pieces::One;
    }
    let pair = |object| {
        let known = cx.analysis.object(object);
        known.shape == Shape::Tuple && known.elements.objects.is_empty()
    };
    if elements.objects.iter().all(pair) { Pieces::Few } else { Pieces::Several }
}

/// Where a container comes out of a file or text, with as many objects as that has, and what a sample is made of then:
/// `json.load(file)`.
fn read_in_one_piece(cx: &Context<'_>, object: &Object) -> Option<(Location, Pieces)> {
    let made = object.at?;
    let Expr::Call(call) = crate::source::expression_at(cx.project(), made)? else { return None };
    let Expr::Attribute(method) = &*call.func else { return None };
    let parsed = matches!(last_name(&method.value), Some("json" | "orjson" | "ujson"))
        && matches!(method.attr.as_str(), "load" | "loads");
    let pieces = if parsed { Pieces::Several } else { Pieces::One };
    (parsed || method.attr.as_str() == "splitlines").then_some((made, pieces))
}

/// Objects from which on copies of them are some megabytes in each worker, with about 100 bytes for each.
const MANY: u32 = 10_000;

/// Whether loops inside one another turn often enough together: `None` where that is not known.
fn are_many(loops: &[&Loop]) -> Option<bool> {
    let most = loops.iter().try_fold(1_u32, |turns, a_loop| Some(turns.saturating_mul(a_loop.at_most?)));
    most.map(|turns| turns >= MANY)
}

fn is_few(kind: LoopKind) -> bool {
    matches!(kind, LoopKind::Times(_) | LoopKind::Parts | LoopKind::Folds)
}

/// Where a container gets as long as the data, by a comprehension or a loop over something long, and whether the program has
/// that length.
fn filled_in_a_loop(
    cx: &Context<'_>,
    id: ObjectId,
    object: &Object,
    growths: &[GrowthFact],
) -> Option<(Location, bool)> {
    let made = object.at?;
    if lists_a_folder(cx, made) {
        return None;
    }
    let inside: Vec<&Loop> = cx.analysis.loops_in(made).collect();
    let many = are_many(&inside);
    if matches!(crate::source::expression_at(cx.project(), made), Some(expr) if is_comprehension(expr))
        && inside.iter().all(|inner| !is_few(inner.kind))
        && many != Some(false)
    {
        return Some((made, many == Some(true)));
    }
    growths.iter().find_map(|growth| {
        growth.cases.iter().find_map(|case| {
            let loops: Vec<&Loop> =
                case.duration.growing.iter().map(|around| cx.analysis.a_loop(*around)).collect();
            let many = are_many(&loops);
            let fills = case.object == id
                && !repeats_one(cx, growth)
                // A framework's loops ask for samples; they do not fill the index.
                && loops.last().is_some_and(|inner| inner.at.is_some() && !is_few(inner.kind));
            (fills && many != Some(false)).then_some((growth.container, many == Some(true)))
        })
    })
}

/// `labels.extend([label] * 100)`: one object, many times.
fn repeats_one(cx: &Context<'_>, growth: &GrowthFact) -> bool {
    let added = match crate::source::statement_at(cx.project(), growth.statement) {
        Some(Stmt::AugAssign(assign)) => Some(&*assign.value),
        Some(Stmt::Expr(stmt)) => match &*stmt.value {
            Expr::Call(call) => call.arguments.args.first(),
            _ => None,
        },
        _ => None,
    };
    let one = |side: &Expr| matches!(side, Expr::List(list) if list.elts.len() == 1);
    matches!(added, Some(Expr::BinOp(product)) if product.op == Operator::Mult && (one(&product.left) || one(&product.right)))
}

/// Names of the files of one folder: one short text for each, and no more than a folder has.
fn lists_a_folder(cx: &Context<'_>, made: Location) -> bool {
    let Some(Expr::ListComp(names)) = crate::source::expression_at(cx.project(), made) else { return false };
    let [only] = &*names.generators else { return false };
    matches!(&only.iter, Expr::Call(call) if matches!(last_name(&call.func), Some("listdir" | "scandir" | "iterdir")))
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
    // How many samples there are is seldom known. A text or a number for each, or a pair of them, is a few megabytes in nearly
    // all data sets.
    let heavy = shared.pieces == Pieces::Several || shared.pieces == Pieces::Few && shared.many;
    let kind = if heavy { Certainty::Likely } else { Certainty::Assumed };
    diagnostic.proof = Proof { kind, ..Proof::FULL };
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Keep the index in few large buffers: numpy arrays, one `bytes` with offsets, pyarrow, a memory-mapped file.",
    );
}
