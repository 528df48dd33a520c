//! Access paths: `self.meters["val"].rows` as a root and steps.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr};

use crate::depth;

/// Steps behind which an expression is no longer followed.
const MAX_STEPS: usize = 48;

/// What an access path starts from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    Name(String),
    /// `super()`.
    Super,
    /// `globals()`: the next key is a name of the module.
    Globals,
    /// A literal, an operator, ...
    Opaque,
}

/// One step of an access path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Attr(String),
    /// `["key"]`.
    Key(String),
    /// Any other subscript, and the variable of a `for`.
    Item,
    /// A slice: another object.
    Slice,
    /// The result of calling what comes before.
    Call,
}

/// How an expression is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Path {
    pub(crate) root: Root,
    pub(crate) steps: Vec<Step>,
}

impl Path {
    pub(crate) fn name(name: &str) -> Self {
        Self { root: Root::Name(name.to_owned()), steps: Vec::new() }
    }

    fn opaque() -> Self {
        Self { root: Root::Opaque, steps: Vec::new() }
    }

    pub(crate) fn with(mut self, step: Step) -> Self {
        match (&step, self.steps.last(), &self.root) {
            // `x.__dict__["a"]` is `x.a`; a class's attributes are its instances' as well.
            (Step::Key(key), Some(Step::Attr(attr)), _) if attr == "__dict__" => {
                self.steps.pop();
                self.steps.push(Step::Attr(key.clone()));
            }
            (Step::Key(key), None, Root::Globals) => self.root = Root::Name(key.clone()),
            (Step::Attr(attr), _, _) if attr == "__class__" => {}
            _ => self.steps.push(step),
        }
        if self.steps.len() > MAX_STEPS { Self::opaque() } else { self }
    }

    pub(crate) fn join(&self, steps: &[Step]) -> Self {
        steps.iter().cloned().fold(self.clone(), Self::with)
    }

    /// The name of a path without steps.
    pub(crate) fn plain(&self) -> Option<&str> {
        match &self.root {
            Root::Name(name) if self.steps.is_empty() => Some(name),
            _ => None,
        }
    }

    pub(crate) fn root_name(&self) -> Option<&str> {
        match &self.root {
            Root::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The last attribute, or the root's name where there is none: what a call of the path calls.
    pub(crate) fn last_name(&self) -> Option<&str> {
        match self.steps.last() {
            Some(Step::Attr(name)) => Some(name),
            Some(_) => None,
            None => self.root_name(),
        }
    }

    /// What follows `prefix`, if this path starts with it.
    pub(crate) fn strip(&self, prefix: &Self) -> Option<&[Step]> {
        (self.root == prefix.root && self.root != Root::Opaque).then_some(())?;
        self.steps.strip_prefix(prefix.steps.as_slice())
    }

    /// Whether this path is empty of information.
    pub(crate) fn is_opaque(&self) -> bool {
        self.root == Root::Opaque && self.steps.is_empty()
    }
}

/// The path that an expression takes.
pub(crate) fn path_of(expr: &Expr) -> Path {
    follow(expr, 0)
}

fn follow(expr: &Expr, depth: usize) -> Path {
    if depth > MAX_STEPS {
        return Path::opaque();
    }
    let next = |expr: &Expr| follow(expr, depth + 1);
    match expr {
        Expr::Name(name) => Path::name(&name.id),
        Expr::Attribute(attribute) => next(&attribute.value).with(Step::Attr(attribute.attr.to_string())),
        Expr::Subscript(subscript) => next(&subscript.value).with(key_step(&subscript.slice)),
        Expr::Call(call) => follow_call(call, depth),
        // The name is what later code writes; what it is bound to is an assignment of its own.
        Expr::Named(named) => next(&named.target),
        Expr::Starred(starred) => next(&starred.value),
        // `(self.rows or [])`: the first is meant.
        Expr::BoolOp(chain) => chain.values.first().map_or_else(Path::opaque, next),
        _ => Path::opaque(),
    }
}

fn key_step(slice: &Expr) -> Step {
    match slice {
        Expr::StringLiteral(text) => Step::Key(text.value.to_str().to_owned()),
        Expr::Slice(_) => Step::Slice,
        _ => Step::Item,
    }
}

fn follow_call(call: &ast::ExprCall, depth: usize) -> Path {
    let next = |expr: &Expr| follow(expr, depth + 1);
    let first = call.arguments.args.first();
    match &*call.func {
        Expr::Attribute(attribute) => {
            let receiver = next(&attribute.value);
            match (attribute.attr.as_str(), first) {
                // The element that is there, or the default that now is.
                ("setdefault" | "get" | "__getitem__", Some(key)) => receiver.with(key_step(key)),
                ("cast", Some(_)) if call.arguments.args.len() == 2 => next(&call.arguments.args[1]),
                (method, _) => receiver.with(Step::Attr(method.to_owned())).with(Step::Call),
            }
        }
        Expr::Name(name) => match (name.id.as_str(), first) {
            ("super", _) => Path { root: Root::Super, steps: Vec::new() },
            ("globals", None) => Path { root: Root::Globals, steps: Vec::new() },
            ("type", Some(of)) if call.arguments.args.len() == 1 => next(of),
            ("vars", Some(of)) => next(of).with(Step::Attr("__dict__".to_owned())),
            ("cast", Some(_)) if call.arguments.args.len() == 2 => next(&call.arguments.args[1]),
            ("getattr", Some(of)) => match call.arguments.args.get(1) {
                Some(Expr::StringLiteral(attr)) => next(of).with(Step::Attr(attr.value.to_str().to_owned())),
                _ => next(of).with(Step::Item),
            },
            (name, _) => Path::name(name).with(Step::Call),
        },
        func => next(func).with(Step::Call),
    }
}

/// Every path that an expression reads, the longest form of each, in order; variables of its own comprehensions and
/// lambdas are left out.
pub(crate) fn reads_of(expr: &Expr) -> Vec<Path> {
    let mut reads = Reads::default();
    reads.visit_expr(expr);
    reads.paths
}

/// Names that a target binds.
pub(crate) fn names_of(target: &Expr) -> Vec<String> {
    reads_of(target).into_iter().filter_map(|path| path.plain().map(str::to_owned)).collect()
}

/// Expressions inside one another in which reads are looked for.
const MAX_DEPTH: usize = 128;

#[derive(Default)]
struct Reads {
    paths: Vec<Path>,
    depth: usize,
}

impl Reads {
    fn without(&mut self, hidden: &[String], visit: impl FnOnce(&mut Self)) {
        let before = self.paths.len();
        visit(self);
        let mut at = 0;
        self.paths.retain(|path| {
            at += 1;
            at <= before || !path.root_name().is_some_and(|root| hidden.iter().any(|name| name == root))
        });
    }
}

impl<'a> Visitor<'a> for Reads {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if self.depth > MAX_DEPTH {
            return;
        }
        self.depth += 1;
        depth::deeper(|| self.read(expr));
        self.depth -= 1;
    }
}

impl Reads {
    fn read(&mut self, expr: &Expr) {
        match expr {
            Expr::Name(_) => self.paths.push(path_of(expr)),
            Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) => {
                let path = path_of(expr);
                if path.root != Root::Opaque {
                    self.paths.push(path);
                }
                self.inside(expr);
            }
            Expr::ListComp(ast::ExprListComp { generators, .. })
            | Expr::SetComp(ast::ExprSetComp { generators, .. })
            | Expr::DictComp(ast::ExprDictComp { generators, .. })
            | Expr::Generator(ast::ExprGenerator { generators, .. }) => {
                let hidden: Vec<String> = generators.iter().flat_map(|part| names_of(&part.target)).collect();
                self.without(&hidden, |reads| visitor::walk_expr(reads, expr));
            }
            Expr::Lambda(lambda) => {
                let hidden: Vec<String> = lambda
                    .parameters
                    .iter()
                    .flat_map(|parameters| parameters.iter())
                    .map(|parameter| parameter.name().to_string())
                    .collect();
                self.without(&hidden, |reads| visitor::walk_expr(reads, expr));
            }
            _ => visitor::walk_expr(self, expr),
        }
    }

    /// Reads in arguments and subscripts along a chain, and in its root where that is no name.
    fn inside(&mut self, mut expr: &Expr) {
        loop {
            expr = match expr {
                Expr::Attribute(attribute) => &attribute.value,
                Expr::Subscript(subscript) => {
                    self.visit_expr(&subscript.slice);
                    &subscript.value
                }
                Expr::Call(call) => {
                    self.visit_arguments(&call.arguments);
                    &call.func
                }
                Expr::Name(_) => return,
                other => return self.visit_expr(other),
            };
        }
    }
}
