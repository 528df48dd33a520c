//! Classes that a project offers and never makes: users decide how many objects there are.

use std::collections::BTreeSet;

use caulk_python::program::{ClassId, FunctionId, Shape};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

use crate::context::Context;
use crate::source::statement_at;

/// Classes that no line of the project makes an object of, nor of one derived from them.
#[derive(Debug)]
pub(crate) struct Offered {
    made: BTreeSet<ClassId>,
}

impl Offered {
    pub(crate) fn new(cx: &Context<'_>) -> Self {
        let mut made = BTreeSet::new();
        let instances = cx.analysis.objects().filter_map(|(_, object)| match object.shape {
            Shape::Instance(class) if object.at.is_some() => Some(class),
            _ => None,
        });
        let mut open: Vec<ClassId> = instances.collect();
        while let Some(class) = open.pop() {
            if made.insert(class) {
                open.extend(&cx.analysis.class(class).bases);
            }
        }
        Self { made }
    }

    /// The class whose method a function is, if others are to make its objects.
    pub(crate) fn class_of(&self, cx: &Context<'_>, function: FunctionId) -> Option<ClassId> {
        let known = cx.analysis.function(function);
        // Members of an enumeration are made by its definition.
        let is_enumeration =
            |class: ClassId| cx.analysis.class(class).libraries.iter().any(|base| base.starts_with("enum."));
        known.class.filter(|class| !known.test && !self.made.contains(class) && !is_enumeration(*class))
    }
}

/// The definition of a function.
pub(crate) fn definition<'a>(cx: &Context<'a>, function: FunctionId) -> Option<&'a StmtFunctionDef> {
    statement_at(cx.project(), cx.analysis.function(function).at)?.as_function_def_stmt()
}

/// Whether an expression in a method means something that the method, or the constructor of its object, was given.
pub(crate) fn is_given(cx: &Context<'_>, class: ClassId, method: &StmtFunctionDef, expr: &Expr) -> bool {
    let given = Given { method, names: Vec::new() }.with_aliases();
    let root = root(expr);
    match root {
        Root::Own(attribute) => {
            let methods = cx.analysis.class(class).methods.values();
            methods.filter_map(|method| definition(cx, *method)).any(|method| binds_given(method, attribute))
        }
        Root::Name(name) => given.includes(name),
        Root::Other => false,
    }
}

/// What an expression is a part of.
enum Root<'a> {
    /// An attribute of the object itself.
    Own(&'a str),
    Name(&'a str),
    Other,
}

/// `net` of `net.layers[0]` and of `enumerate(net.children())`, the attribute `net` of `self.net.head`.
fn root(expr: &Expr) -> Root<'_> {
    match expr {
        Expr::Name(name) => Root::Name(&name.id),
        Expr::Attribute(attribute) => match &*attribute.value {
            Expr::Name(owner) if owner.id == "self" => Root::Own(&attribute.attr),
            inner => root(inner),
        },
        Expr::Subscript(subscript) => root(&subscript.value),
        Expr::Call(call) => match (&*call.func, call.arguments.args.first()) {
            (Expr::Name(_), Some(first)) => root(first),
            (Expr::Attribute(method), _) => root(&method.value),
            _ => Root::Other,
        },
        _ => Root::Other,
    }
}

/// Whether a method binds an attribute to one of its parameters.
fn binds_given(method: &StmtFunctionDef, attribute: &str) -> bool {
    struct Binds<'a> {
        given: Given<'a>,
        attribute: &'a str,
        found: bool,
    }
    impl<'a> Visitor<'a> for Binds<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::Assign(assign) = stmt {
                let own = |target: &Expr| matches!(root(target), Root::Own(name) if name == self.attribute);
                let value = matches!(root(&assign.value), Root::Name(name) if self.given.includes(name));
                self.found |= value && assign.targets.iter().any(own);
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut binds = Binds { given: Given { method, names: Vec::new() }, attribute, found: false };
    binds.visit_body(&method.body);
    binds.found
}

/// Parameters of a method, and names for them and their parts.
struct Given<'a> {
    method: &'a StmtFunctionDef,
    names: Vec<&'a str>,
}

impl<'a> Given<'a> {
    fn includes(&self, name: &str) -> bool {
        name != "self" && (self.method.parameters.includes(name) || self.names.contains(&name))
    }

    fn with_aliases(mut self) -> Self {
        let method = self.method;
        self.visit_body(&method.body);
        self
    }

    fn bind(&mut self, target: &'a Expr, value: &'a Expr) {
        if !matches!(root(value), Root::Name(name) if self.includes(name)) {
            return;
        }
        match target {
            Expr::Name(name) => self.names.push(&name.id),
            Expr::Tuple(parts) => {
                let names = parts.iter().filter_map(Expr::as_name_expr);
                self.names.extend(names.map(|name| name.id.as_str()));
            }
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Given<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.bind(target, &assign.value));
            }
            Stmt::For(repeated) => self.bind(&repeated.target, &repeated.iter),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }
    fn visit_expr(&mut self, _: &'a Expr) {}
}
