//! Whether all that is ever done with what a variable holds reads numbers.

use ruff_python_ast::{self as ast, ConversionFlag, ExceptHandler, Expr, InterpolatedStringElement, Stmt};
use rustc_hash::FxHashSet;

use crate::library::numbers;
use crate::proof::holder::Holder;
use crate::proof::scope::Scope;

/// Something may look at the graph, or cannot be told not to.
struct Seen;

/// Whether an expression's value has to do with what is stored.
type Told = Result<bool, Seen>;

/// Whether what `holder` and everything taken from it hold is only read for numbers.
pub(super) fn are_of_numbers(scope: &Scope<'_>, holder: Holder<'_>) -> bool {
    let mut reads = Reads { scope, stored: FxHashSet::default(), held: FxHashSet::default() };
    // What is taken from it is followed, too, until nothing more is.
    reads.hold(holder.name, holder.inside).and_then(|()| reads.follow()).is_ok()
}

struct Reads<'s, 'a> {
    scope: &'s Scope<'a>,
    /// Variables that hold what is stored, or what was made from it.
    stored: FxHashSet<String>,
    /// Those in whose objects it is stored: nobody else may have these. Whether it is stored deeper inside.
    held: FxHashSet<(String, bool)>,
}

impl Reads<'_, '_> {
    fn follow(&mut self) -> Result<(), Seen> {
        loop {
            let known = self.stored.len();
            self.suite(self.scope.body)?;
            if !self.stored.iter().all(|name| self.scope.is_private(name)) {
                return Err(Seen);
            }
            if self.stored.len() == known {
                return Ok(());
            }
        }
    }

    /// Something is stored in the object of a variable: it must have been made here, for this variable.
    fn hold(&mut self, name: &str, inside: bool) -> Result<(), Seen> {
        if !self.held.insert((name.to_owned(), inside)) {
            return Ok(());
        }
        self.stored.insert(name.to_owned());
        let values = self.scope.values(name).ok_or(Seen)?;
        values.iter().try_for_each(|value| self.made_here(value, inside))
    }

    fn made_here(&mut self, value: &Expr, inside: bool) -> Result<(), Seen> {
        let elements = |this: &mut Self, values: &[&Expr]| {
            if inside { values.iter().try_for_each(|value| this.made_here(value, inside)) } else { Ok(()) }
        };
        match value {
            Expr::NumberLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::StringLiteral(_) => Ok(()),
            Expr::BinOp(_) | Expr::UnaryOp(_) if !inside => Ok(()),
            Expr::List(list) => elements(self, &list.elts.iter().collect::<Vec<_>>()),
            Expr::Dict(dict) => elements(self, &dict.iter_values().collect::<Vec<_>>()),
            Expr::ListComp(list) => elements(self, &[&*list.elt]),
            Expr::DictComp(dict) => elements(self, &[&*dict.value]),
            Expr::Name(name) => self.hold(&name.id, inside),
            Expr::Call(call) if self.makes(call, inside) => Ok(()),
            _ => Err(Seen),
        }
    }

    /// A call that makes an object of its own.
    fn makes(&self, call: &ast::ExprCall, inside: bool) -> bool {
        let named = self.scope.canonical(&call.func);
        let name = named.as_deref().or_else(|| self.scope.builtin(&call.func)).unwrap_or_default();
        let factory =
            |value: &Expr| self.scope.builtin(value).is_some_and(|name| numbers::CONTAINERS.contains(&name));
        let empty = call.arguments.args.iter().all(factory);
        numbers::FRESH.contains(&name) || numbers::CONTAINERS.contains(&name) && (empty || !inside)
    }

    fn suite(&mut self, body: &[Stmt]) -> Result<(), Seen> {
        body.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), Seen> {
        match stmt {
            Stmt::Assign(assign) => {
                let stored = self.value(&assign.value)?;
                assign.targets.iter().try_for_each(|target| self.bind(target, stored))
            }
            Stmt::AnnAssign(assign) => {
                let stored = assign.value.as_ref().map_or(Ok(false), |value| self.value(value))?;
                self.bind(&assign.target, stored)
            }
            // It may change an object that others have.
            Stmt::AugAssign(assign) => match (&*assign.target, self.value(&assign.value)?) {
                (Expr::Name(name), true) => self.hold(&name.id, false),
                (target, stored) => self.bind(target, stored),
            },
            Stmt::Expr(stmt) => self.value(&stmt.value).map(drop),
            Stmt::For(stmt) => {
                let stored = self.value(&stmt.iter)?;
                self.bind(&stmt.target, stored)?;
                self.suite(&stmt.body)?;
                self.suite(&stmt.orelse)
            }
            Stmt::While(stmt) => {
                self.value(&stmt.test)?;
                self.suite(&stmt.body)?;
                self.suite(&stmt.orelse)
            }
            Stmt::If(stmt) => {
                self.value(&stmt.test)?;
                self.suite(&stmt.body)?;
                stmt.elif_else_clauses.iter().try_for_each(|clause| {
                    clause.test.as_ref().map_or(Ok(false), |test| self.value(test))?;
                    self.suite(&clause.body)
                })
            }
            Stmt::With(stmt) => {
                for item in &stmt.items {
                    self.plain(&item.context_expr)?;
                    item.optional_vars.as_ref().map_or(Ok(()), |target| self.bind(target, false))?;
                }
                self.suite(&stmt.body)
            }
            Stmt::Try(stmt) => {
                self.suite(&stmt.body)?;
                for ExceptHandler::ExceptHandler(handler) in &stmt.handlers {
                    handler.type_.as_ref().map_or(Ok(()), |kind| self.plain(kind))?;
                    self.suite(&handler.body)?;
                }
                self.suite(&stmt.orelse)?;
                self.suite(&stmt.finalbody)
            }
            Stmt::Return(stmt) => stmt.value.as_ref().map_or(Ok(()), |value| self.plain(value)),
            Stmt::Raise(stmt) => stmt.exc.iter().chain(&stmt.cause).try_for_each(|value| self.plain(value)),
            Stmt::Assert(stmt) => {
                self.value(&stmt.test)?;
                stmt.msg.as_ref().map_or(Ok(()), |text| self.plain(text))
            }
            Stmt::Delete(stmt) => stmt.targets.iter().try_for_each(|target| match target {
                Expr::Subscript(part) => self.plain(&part.slice),
                Expr::Name(_) => Ok(()),
                other => self.plain(other),
            }),
            // Variables that functions and classes mention are not private.
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::Global(_) | Stmt::Nonlocal(_) => Ok(()),
            Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) | Stmt::Import(_) | Stmt::ImportFrom(_) => {
                Ok(())
            }
            _ => Err(Seen),
        }
    }

    /// A target that gets something stored, or something else.
    fn bind(&mut self, target: &Expr, stored: bool) -> Result<(), Seen> {
        match target {
            Expr::Name(name) => {
                if stored {
                    self.stored.insert(name.id.to_string());
                }
                Ok(())
            }
            Expr::Tuple(tuple) => tuple.elts.iter().try_for_each(|target| self.bind(target, stored)),
            Expr::List(list) => list.elts.iter().try_for_each(|target| self.bind(target, stored)),
            Expr::Starred(starred) => self.bind(&starred.value, stored),
            Expr::Subscript(part) => {
                self.plain(&part.slice)?;
                if !stored {
                    return self.value(&part.value).map(drop);
                }
                let holder = Holder::of(&part.value).ok_or(Seen)?;
                self.hold(holder.name, holder.inside)
            }
            Expr::Attribute(attribute) if !stored => self.plain(&attribute.value),
            _ => Err(Seen),
        }
    }

    /// An expression that has nothing to do with what is stored.
    fn plain(&mut self, expr: &Expr) -> Result<(), Seen> {
        if self.value(expr)? { Err(Seen) } else { Ok(()) }
    }

    fn any<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) -> Told {
        all.into_iter().try_fold(false, |stored, expr| Ok(self.value(expr)? || stored))
    }

    fn value(&mut self, expr: &Expr) -> Told {
        match expr {
            Expr::Name(name) => Ok(self.stored.contains(name.id.as_str())),
            // What a lambda mentions is not private.
            Expr::Lambda(_)
            | Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_) => Ok(false),
            Expr::BinOp(both) if matches!(&*both.left, Expr::StringLiteral(_)) => self.formatted(both),
            Expr::BinOp(both) => self.any([&*both.left, &*both.right]),
            Expr::UnaryOp(unary) if unary.op == ast::UnaryOp::Not => {
                self.value(&unary.operand).map(|_| false)
            }
            Expr::UnaryOp(unary) => self.value(&unary.operand),
            Expr::BoolOp(all) => self.any(&all.values),
            Expr::Compare(compare) => self.compared(compare),
            Expr::If(either) => {
                self.value(&either.test)?;
                self.any([&*either.body, &*either.orelse])
            }
            Expr::Named(named) => {
                let stored = self.value(&named.value)?;
                self.bind(&named.target, stored)?;
                Ok(stored)
            }
            Expr::List(list) => self.any(&list.elts),
            Expr::Tuple(tuple) => self.any(&tuple.elts),
            Expr::Dict(dict) => {
                dict.iter_keys().flatten().try_for_each(|key| self.plain(key))?;
                self.any(dict.iter_values())
            }
            Expr::Set(set) => set.elts.iter().try_for_each(|value| self.plain(value)).map(|()| false),
            Expr::ListComp(inner) => self.comprehension(&inner.generators, [&*inner.elt]),
            Expr::Generator(inner) => self.comprehension(&inner.generators, [&*inner.elt]),
            Expr::Starred(starred) => self.value(&starred.value),
            Expr::Slice(slice) => {
                let parts = [&slice.lower, &slice.upper, &slice.step];
                parts.into_iter().flatten().try_for_each(|part| self.plain(part)).map(|()| false)
            }
            Expr::Subscript(part) => {
                self.plain(&part.slice)?;
                self.value(&part.value)
            }
            Expr::Attribute(attribute) => match self.value(&attribute.value)? {
                false => Ok(false),
                true if numbers::ATTRIBUTES.contains(&attribute.attr.as_str()) => Ok(false),
                true => Err(Seen),
            },
            Expr::FString(text) => self.f_string(text),
            Expr::Call(call) => self.call(call),
            Expr::Await(inner) => self.plain(&inner.value).map(|()| false),
            _ => Err(Seen),
        }
    }

    /// `==` and `<` look at numbers, `is` and `in` at which object it is.
    fn compared(&mut self, compare: &ast::ExprCompare) -> Told {
        let sides = || std::iter::once(&*compare.left).chain(&compare.comparators);
        let by_number = compare
            .ops
            .iter()
            .all(|op| !matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn));
        let with_none = compare.comparators.iter().all(Expr::is_none_literal_expr);
        if self.any(sides())? && !by_number && !with_none { Err(Seen) } else { Ok(false) }
    }

    fn comprehension<'e>(
        &mut self,
        generators: &[ast::Comprehension],
        elements: impl IntoIterator<Item = &'e Expr>,
    ) -> Told {
        for generator in generators {
            let stored = self.value(&generator.iter)?;
            self.bind(&generator.target, stored)?;
            generator.ifs.iter().try_for_each(|test| self.value(test).map(drop))?;
        }
        self.any(elements)
    }

    /// A format such as `.3f` takes the number out of a tensor; without one it may be printed whole.
    fn f_string(&mut self, text: &ast::ExprFString) -> Told {
        for element in text.value.elements() {
            let InterpolatedStringElement::Interpolation(part) = element else { continue };
            let as_number = part.conversion == ConversionFlag::None && part.format_spec.is_some();
            if self.value(&part.expression)? && !as_number {
                return Err(Seen);
            }
        }
        Ok(false)
    }

    /// `"%.3f" % loss`
    fn formatted(&mut self, both: &ast::ExprBinOp) -> Told {
        let Expr::StringLiteral(text) = &*both.left else { return Err(Seen) };
        let whole = ["%s", "%r", "%a", "%("].iter().any(|form| text.value.to_str().contains(form));
        if self.value(&both.right)? && (whole || both.op != ast::Operator::Mod) {
            Err(Seen)
        } else {
            Ok(false)
        }
    }

    fn call(&mut self, call: &ast::ExprCall) -> Told {
        let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
        let given: Vec<&Expr> = call.arguments.args.iter().chain(named).collect();
        let stored = self.any(given.iter().copied())?;
        if let Expr::Attribute(method) = &*call.func
            && self.value(&method.value)?
        {
            return self::method(&method.attr, stored);
        }
        if let Some(name) = self.scope.builtin(&call.func) {
            // What shows a function's variables shows these.
            if matches!(name, "locals" | "vars" | "eval" | "exec" | "dir") {
                return Err(Seen);
            }
            if !stored || numbers::TO_NUMBER.contains(&name) {
                return Ok(false);
            }
            let plain = call.arguments.keywords.is_empty();
            return if numbers::HAND_ON.contains(&name) && plain { Ok(true) } else { Err(Seen) };
        }
        if !stored {
            self.value(&call.func)?;
            return Ok(false);
        }
        let plain = call.arguments.find_keyword("out").is_none();
        let computes = |name: String| numbers::FUNCTIONS.contains(&name.as_str());
        if plain && self.scope.canonical(&call.func).is_some_and(computes) {
            return Ok(true);
        }
        self.gathered(call)
    }

    /// `numbers.append(losses[-1])`: the other list holds it, too.
    fn gathered(&mut self, call: &ast::ExprCall) -> Told {
        let Expr::Attribute(method) = &*call.func else { return Err(Seen) };
        let holder = Holder::of(&method.value).filter(|_| numbers::GATHER.contains(&method.attr.as_str()));
        let holder = holder.ok_or(Seen)?;
        self.hold(holder.name, holder.inside).map(|()| false)
    }
}

/// A method of something stored.
fn method(name: &str, given: bool) -> Told {
    if numbers::READERS.contains(&name) || numbers::DROP.contains(&name) || numbers::GATHER.contains(&name) {
        Ok(false)
    } else if [numbers::METHODS, numbers::REDUCTIONS, numbers::TAKE].iter().any(|all| all.contains(&name)) {
        if given && numbers::TAKE.contains(&name) { Err(Seen) } else { Ok(true) }
    } else {
        Err(Seen)
    }
}
