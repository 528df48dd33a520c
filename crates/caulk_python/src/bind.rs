//! What assignments, loops and imports bind, and what binding a name again does to what it held.

use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use crate::collect::Collector;
use crate::hint::{Hint, hint_of, hint_of_part};
use crate::index::{Action, Assignment, Nature, Op};
use crate::path::{Path, Root, Step, names_of, path_of, reads_of};
use crate::sites::GrowKind;
use crate::value::Value;

impl Collector<'_> {
    pub(crate) fn import(&mut self, name: &str, range: TextRange, from: String) {
        self.index.imports.insert(name.to_owned(), from);
        if self.at_top() {
            self.index.last_import = Some(self.index.statements.len().saturating_sub(1));
        }
        self.bind_plain(name, range, Nature::Definition);
    }

    /// A name is bound to something without a path.
    pub(crate) fn bind_plain(&mut self, name: &str, range: TextRange, nature: Nature) {
        self.scope_mut().bound.insert(name.to_owned());
        let place = self.place(range);
        self.index.assignments.push(Assignment {
            place,
            target: Path::name(name),
            target_range: range,
            source: None,
            callee: None,
            reads: Vec::new(),
            value: None,
            hint: Hint::Unknown,
            nature,
            capacity: None,
        });
    }

    /// The variables of a `for` or comprehension: elements of what is iterated.
    pub(crate) fn bind_element(&mut self, target: &Expr, iter: &Expr) {
        let mut over = path_of(iter);
        let mut target = target;
        if let [.., Step::Attr(method), Step::Call] = over.steps.as_slice() {
            if matches!(method.as_str(), "values" | "items") {
                if let (true, Expr::Tuple(pair)) = (method == "items", target)
                    && let [key, value] = pair.elts.as_slice()
                {
                    self.bind_names(key, &Hint::Object);
                    target = value;
                }
                over.steps.truncate(over.steps.len() - 2);
            } else {
                over = Path { root: Root::Opaque, steps: Vec::new() };
            }
        }
        let counted = matches!(iter, Expr::Call(call) if path_of(&call.func).plain() == Some("range"));
        match (target, iter) {
            // `for store in (self.a, self.b)`: each of them.
            (
                Expr::Name(name),
                Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }),
            ) => {
                self.bind_names(target, &Hint::Unknown);
                for member in elts {
                    self.push_assignment(
                        &Path::name(&name.id),
                        name.range(),
                        Some(member),
                        Some(path_of(member)),
                    );
                }
            }
            (Expr::Name(name), _) if !over.is_opaque() && !matches!(over.steps.last(), Some(Step::Call)) => {
                self.bind_names(target, &Hint::Unknown);
                self.push_assignment(&Path::name(&name.id), name.range(), None, Some(over.with(Step::Item)));
            }
            (Expr::Tuple(pair), Expr::Call(call))
                if path_of(&call.func).plain() == Some("enumerate") && pair.elts.len() == 2 =>
            {
                self.bind_names(&pair.elts[0], &Hint::Scalar);
                match call.arguments.args.first() {
                    Some(iter) => self.bind_element(&pair.elts[1], iter),
                    None => self.bind_names(&pair.elts[1], &Hint::Unknown),
                }
            }
            _ => self.bind_names(target, if counted { &Hint::Scalar } else { &Hint::Unknown }),
        }
    }

    fn bind_names(&mut self, target: &Expr, hint: &Hint) {
        for name in names_of(target) {
            self.bind_plain(&name, target.range(), Nature::Other);
            if let Some(last) = self.index.assignments.last_mut() {
                last.hint = hint.clone();
            }
        }
        self.stored_through(target);
    }

    /// `target = value`.
    pub(crate) fn bind(&mut self, target: &Expr, value: &Expr) {
        match target {
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let values = match value {
                    Expr::Tuple(tuple) => tuple.elts.as_slice(),
                    Expr::List(list) => list.elts.as_slice(),
                    _ => &[],
                };
                let starred = |exprs: &[Expr]| exprs.iter().any(Expr::is_starred_expr);
                if values.len() == elts.len() && !starred(values) && !starred(elts) {
                    for (target, value) in elts.iter().zip(values) {
                        self.bind(target, value);
                    }
                } else {
                    for target in elts {
                        self.bind_part(target, value);
                    }
                }
            }
            Expr::Starred(starred) => self.bind_part(&starred.value, value),
            Expr::Name(_) | Expr::Attribute(_) => {
                if let Expr::Name(name) = target {
                    self.scope_mut().bound.insert(name.id.to_string());
                }
                self.stored_through(target);
                let source = Some(path_of(value)).filter(|path| !path.is_opaque());
                let path = path_of(target);
                self.push_assignment(&path, target.range(), Some(value), source);
                self.rebound(target, value, true);
                self.bind_keys(&path, value);
            }
            Expr::Subscript(subscript) => self.store(subscript, value),
            _ => self.visit_expr(target),
        }
    }

    /// The keys of a dict display are names as well: `history = {"val": []}`.
    fn bind_keys(&mut self, target: &Path, value: &Expr) {
        let Expr::Dict(dict) = value else { return };
        for item in &dict.items {
            if let Some(Expr::StringLiteral(key)) = &item.key {
                let path = target.clone().with(Step::Key(key.value.to_str().to_owned()));
                self.push_assignment(&path, key.range(), Some(&item.value), None);
            }
        }
    }

    /// A target that gets a part of an unpacked value.
    fn bind_part(&mut self, target: &Expr, value: &Expr) {
        match target {
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                for target in elts {
                    self.bind_part(target, value);
                }
            }
            Expr::Starred(starred) => self.bind_part(&starred.value, value),
            Expr::Name(_) | Expr::Attribute(_) => {
                if let Expr::Name(name) = target {
                    self.scope_mut().bound.insert(name.id.to_string());
                }
                self.stored_through(target);
                self.push_assignment(&path_of(target), target.range(), Some(value), None);
                if let Some(last) = self.index.assignments.last_mut() {
                    last.callee = None;
                    last.capacity = None;
                    last.hint = hint_of_part(value);
                    if last.nature == Nature::Empty {
                        last.nature = Nature::Other;
                    }
                }
                self.rebound(target, value, false);
            }
            Expr::Subscript(subscript) => self.store(subscript, value),
            _ => self.visit_expr(target),
        }
    }

    /// Reads on the way to a target: `a.b` in `a.b.c = v`.
    fn stored_through(&mut self, target: &Expr) {
        match target {
            Expr::Attribute(attribute) => self.visit_expr(&attribute.value),
            Expr::Subscript(subscript) => {
                self.visit_expr(&subscript.value);
                self.visit_expr(&subscript.slice);
            }
            _ => {}
        }
    }

    pub(crate) fn push_assignment(
        &mut self,
        target: &Path,
        range: TextRange,
        value: Option<&Expr>,
        source: Option<Path>,
    ) {
        let reads = value.map(reads_of).unwrap_or_default();
        let callee = value.and_then(|value| match value {
            Expr::Call(call) => Some(path_of(&call.func)),
            _ => None,
        });
        self.index.assignments.push(Assignment {
            place: self.place(range),
            target: target.clone(),
            target_range: range,
            source,
            callee,
            nature: value.map_or(Nature::Other, |value| crate::loads::nature(target, value, &reads)),
            reads,
            value: value.map(Ranged::range),
            hint: value.map_or(Hint::Unknown, hint_of),
            capacity: value.and_then(|value| crate::loads::capacity(value, self.source)),
        });
    }

    /// The operations of binding a name or attribute again; `whole` where it gets the value and no part of it.
    fn rebound(&mut self, target: &Expr, value: &Expr, whole: bool) {
        let Some(nature) = self.index.assignments.last().map(|last| last.nature) else { return };
        let path = path_of(target);
        let stored = whole.then(|| Value::new(value, self.source));
        let kind = match nature {
            Nature::Itself { .. } => GrowKind::Rebind,
            _ => GrowKind::Assign,
        };
        let arithmetic = nature == Nature::Itself { arithmetic: true };
        match nature {
            Nature::Empty => self.act_anew(path.clone(), target.range(), Action::Reset),
            Nature::Part => self.act_anew(path.clone(), target.range(), Action::Trim),
            _ => {}
        }
        let place = self.place(target.range());
        let (container, action) = (target.range(), Action::Grow(kind));
        let op = Op {
            place,
            path,
            container,
            action,
            value: stored,
            key: None,
            arithmetic,
            anew: true,
            method: None,
        };
        self.index.ops.push(op);
    }
}
