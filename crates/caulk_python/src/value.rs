//! An expression that is stored somewhere: its text, its place, its shape and what its source says of its type.

use caulk_core::Position;
use ruff_python_ast::{self as ast, Expr, Operator, OperatorPrecedence};
use ruff_text_size::{Ranged, TextRange};

use crate::depth;
use crate::display::{COLLECTIONS, is_collection, is_display};
use crate::hint::{Hint, hint_of};
use crate::path::{Path, Root, Step, path_of, reads_of};
use crate::text::Source;

/// What a statement stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// As written.
    pub text: String,
    /// First character.
    pub start: Position,
    /// First character after it.
    pub end: Position,
    /// Variables that it reads, in order of appearance, each once: `loss`, `self.hidden`.
    pub names: Vec<String>,
    pub(crate) range: TextRange,
    pub(crate) shape: Shape,
    pub(crate) hint: Hint,
    pub(crate) reads: Vec<Path>,
}

/// How an expression is built, as far as edits care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A variable or an attribute.
    Variable,
    /// A display or a constructor call with these members, or a sum of displays.
    Members(Vec<Value>),
    /// Something whose elements become members: `*rest`, a summand beside a display.
    Spread,
    /// A comprehension of such elements.
    Each(Box<Value>),
    /// A slice or an element of something.
    View,
    /// Callables: they keep what they close over.
    Callable,
    /// `a if isinstance(x, T) else b`: types are told apart already.
    Guarded,
    /// Anything else; true where a method can be called on it without parentheses.
    Other { atomic: bool },
}

/// Displays inside displays that are taken apart.
const MAX_NESTING: usize = 6;

impl Value {
    pub(crate) fn new(expr: &Expr, source: &Source) -> Self {
        Self::nested(expr, source, 0)
    }

    /// The elements of an expression, as members of what they are put into.
    fn spread(expr: &Expr, source: &Source, depth: usize) -> Vec<Self> {
        let value = Self::nested(expr, source, depth);
        match value.shape {
            Shape::Members(members) if is_collection(expr) => members,
            Shape::Each(element) => vec![*element],
            _ => vec![Self { shape: Shape::Spread, ..value }],
        }
    }

    fn nested(expr: &Expr, source: &Source, depth: usize) -> Self {
        depth::deeper(|| {
            let range = expr.range();
            let reads = reads_of(expr);
            Self {
                text: source.slice(range).to_owned(),
                start: source.position(range.start()),
                end: source.position(range.end()),
                names: names(&reads),
                range,
                shape: shape(expr, source, depth),
                hint: hint_of(expr),
                reads,
            }
        })
    }

    /// The text with parentheses where a method call on it needs them.
    pub(crate) fn callable_text(&self) -> String {
        match self.shape {
            Shape::Other { atomic: false } => format!("({})", self.text),
            _ => self.text.clone(),
        }
    }
}

/// Variables among paths: the root, and the first attribute of `self`. What is only called is none.
pub(crate) fn names(reads: &[Path]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for path in reads {
        let name = match (&path.root, path.steps.as_slice()) {
            (Root::Name(root), [Step::Attr(_), Step::Call, ..]) if root == "self" => continue,
            (Root::Name(root), [Step::Attr(attr), ..]) if root == "self" => format!("self.{attr}"),
            (_, [Step::Call, ..]) => continue,
            (Root::Name(root), _) => root.clone(),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn shape(expr: &Expr, source: &Source, depth: usize) -> Shape {
    if depth > MAX_NESTING {
        return Shape::Other { atomic: false };
    }
    let member = |item: &Expr| match item {
        Expr::Starred(starred) => Value::spread(&starred.value, source, depth + 1),
        item => vec![Value::nested(item, source, depth + 1)],
    };
    let elements = |item: &Expr| Value::spread(item, source, depth + 1);
    let members = |items: &mut dyn Iterator<Item = &Expr>| Shape::Members(items.flat_map(member).collect());
    match expr {
        Expr::Name(_) | Expr::Attribute(_) => Shape::Variable,
        Expr::Tuple(tuple) => members(&mut tuple.elts.iter()),
        Expr::List(list) => members(&mut list.elts.iter()),
        Expr::Set(set) => members(&mut set.elts.iter()),
        Expr::Dict(dict) => {
            let of_item = |item: &ast::DictItem| match item.key {
                Some(_) => member(&item.value),
                None => elements(&item.value),
            };
            Shape::Members(dict.items.iter().flat_map(of_item).collect())
        }
        Expr::Call(call) if constructs(call) => {
            let positional = |item| if is_collection(expr) { elements(item) } else { member(item) };
            let keyword = |item: &ast::Keyword| match item.arg {
                Some(_) => member(&item.value),
                None => elements(&item.value),
            };
            let (positionals, keywords) = (call.arguments.args.iter(), call.arguments.keywords.iter());
            Shape::Members(positionals.flat_map(positional).chain(keywords.flat_map(keyword)).collect())
        }
        Expr::BinOp(binary) if is_collection(expr) => {
            let summands: &[&Expr] = match binary.op {
                // Of `[x] * n` one side is a number.
                Operator::Mult if is_display(&binary.right) => &[&binary.right],
                Operator::Mult => &[&binary.left],
                _ => &[&binary.left, &binary.right],
            };
            Shape::Members(summands.iter().flat_map(|summand| elements(summand)).collect())
        }
        Expr::ListComp(ast::ExprListComp { elt, .. })
        | Expr::SetComp(ast::ExprSetComp { elt, .. })
        | Expr::DictComp(ast::ExprDictComp { value: elt, .. })
        | Expr::Generator(ast::ExprGenerator { elt, .. }) => {
            Shape::Each(Box::new(Value::nested(elt, source, depth + 1)))
        }
        Expr::Lambda(_) => Shape::Callable,
        Expr::If(choice) if matches!(&*choice.test, Expr::Call(call) if path_of(&call.func).plain() == Some("isinstance")) => {
            Shape::Guarded
        }
        Expr::Subscript(_) => Shape::View,
        _ => Shape::Other {
            atomic: !expr.is_number_literal_expr()
                && OperatorPrecedence::from(expr) >= OperatorPrecedence::CallAttribute,
        },
    }
}

/// `IKSolution(q, err)`, `dict(loss=loss)`: an object around its arguments.
fn constructs(call: &ast::ExprCall) -> bool {
    let path = path_of(&call.func);
    path.last_name().is_some_and(|name| {
        COLLECTIONS.contains(&name)
            || name == "SimpleNamespace"
            || name.trim_start_matches('_').chars().next().is_some_and(char::is_uppercase)
                && name.chars().any(char::is_lowercase)
                && !matches!(name, "Tensor" | "Parameter" | "Variable")
    })
}
