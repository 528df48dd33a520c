//! What expressions do to containers: methods that grow, shrink and read, subscripts, comparisons.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, CmpOp, Expr, ExprContext, Operator};
use ruff_text_size::{Ranged, TextRange};

use crate::collect::Collector;
use crate::depth;
use crate::index::{Action, Argument, CallRecord, Key, Nature, Op, ScopeKind};
use crate::path::{Path, Step, path_of, reads_of};
use crate::sites::GrowKind;
use crate::text::Source;
use crate::value::Value;

/// Methods that make their receiver grow, with the position of what they store.
pub(crate) fn growth_of(method: &str) -> Option<(GrowKind, usize)> {
    Some(match method {
        "append" | "appendleft" => (GrowKind::Append, 0),
        "extend" | "extendleft" | "frombytes" | "fromlist" => (GrowKind::Extend, 0),
        "insert" => (GrowKind::Insert, 1),
        "add" => (GrowKind::Add, 0),
        "update" => (GrowKind::Update, 0),
        "setdefault" | "__setitem__" => {
            (if method == "setdefault" { GrowKind::SetDefault } else { GrowKind::Subscript }, 1)
        }
        "put" | "put_nowait" => (GrowKind::Put, 0),
        "add_" | "sub_" | "__iadd__" => (GrowKind::AugAdd, 0),
        "write" | "writelines" => (GrowKind::Write, 0),
        "addHandler" | "addFilter" | "add_param_group" | "add_module" | "connect" | "subscribe"
        | "add_done_callback" | "add_callback" => (GrowKind::Register, 0),
        _ if method.starts_with("register_") && method.ends_with("_hook") || method == "register_hook" => {
            (GrowKind::Register, 0)
        }
        _ => return None,
    })
}

/// Methods that a bound method is handed around for.
fn growth_as_callback(method: &str) -> Option<GrowKind> {
    matches!(method, "append" | "appendleft" | "extend" | "put" | "put_nowait")
        .then(|| growth_of(method).map(|(kind, _)| kind))
        .flatten()
}

impl Collector<'_> {
    /// Records an operation without a value.
    pub(crate) fn act(&mut self, path: Path, container: TextRange, action: Action) {
        let place = self.place(container);
        let op = Op {
            place,
            path,
            container,
            action,
            value: None,
            key: None,
            arithmetic: false,
            anew: false,
            method: None,
        };
        self.index.ops.push(op);
    }

    /// As [`Self::act`], where a name gets another object.
    pub(crate) fn act_anew(&mut self, path: Path, container: TextRange, action: Action) {
        self.act(path, container, action);
        if let Some(last) = self.index.ops.last_mut() {
            last.anew = true;
        }
    }

    /// Records growth.
    fn grow(&mut self, container: &Expr, kind: GrowKind, value: Option<&Expr>, key: Option<&Expr>) {
        let _ = self.growth(container, kind, value, key);
    }

    /// Records growth, to be completed; `None` where it is nested too deep for that.
    fn growth(
        &mut self,
        container: &Expr,
        kind: GrowKind,
        value: Option<&Expr>,
        key: Option<&Expr>,
    ) -> Option<&mut Op> {
        if self.too_deep() {
            return None;
        }
        let op = Op {
            place: self.place(container.range()),
            path: path_of(container),
            container: container.range(),
            action: Action::Grow(kind),
            value: value.map(|value| Value::new(value, self.source)),
            key: key.map(|key| Key { text: self.source.inline(key.range()), reads: reads_of(key) }),
            arithmetic: false,
            anew: kind == GrowKind::Assign,
            method: None,
        };
        self.index.ops.push(op);
        self.index.ops.last_mut()
    }

    /// `target op= value`.
    pub(crate) fn augmented(&mut self, assign: &ast::StmtAugAssign) {
        let target = &*assign.target;
        if let Expr::Name(name) = target {
            let name = name.id.to_string();
            self.scope_mut().bound.insert(name);
        } else {
            self.visit_expr(target);
        }
        let kind = if assign.op == Operator::BitOr { GrowKind::Update } else { GrowKind::AugAdd };
        if let Some(op) = self.growth(target, kind, Some(&assign.value), None) {
            op.arithmetic = kind == GrowKind::AugAdd;
        }
    }

    /// `d[k] = v`.
    pub(crate) fn store(&mut self, subscript: &ast::ExprSubscript, value: &Expr) {
        self.visit_expr(&subscript.value);
        self.visit_expr(&subscript.slice);
        let container = match &*subscript.value {
            // `frame.loc[key] = row` grows the frame.
            Expr::Attribute(indexer) if matches!(indexer.attr.as_str(), "loc" | "iloc" | "at" | "iat") => {
                &indexer.value
            }
            other => other,
        };
        let path = path_of(container);
        if subscript.slice.is_slice_expr() {
            let reads = reads_of(value);
            match nature(&path, value, &reads) {
                Nature::Part | Nature::Empty => self.act(path, container.range(), Action::Trim),
                _ => self.grow(container, GrowKind::SliceAssign, Some(value), None),
            }
            return;
        }
        self.grow(container, GrowKind::Subscript, Some(value), Some(&subscript.slice));
        if let Expr::StringLiteral(key) = &*subscript.slice {
            // The key is a name as well: `history["val"] = []`.
            let element = path.with(Step::Key(key.value.to_str().to_owned()));
            self.push_assignment(&element, subscript.range(), Some(value), Some(path_of(value)));
            let nature = self.index.assignments.last().map_or(Nature::Other, |last| last.nature);
            let kind = match nature {
                Nature::Itself { .. } => GrowKind::Rebind,
                _ => GrowKind::Assign,
            };
            match nature {
                Nature::Empty => self.act_anew(element.clone(), subscript.range(), Action::Reset),
                Nature::Part => self.act_anew(element.clone(), subscript.range(), Action::Trim),
                _ => {}
            }
            let op = Op {
                place: self.place(subscript.range()),
                path: element,
                container: subscript.range(),
                action: Action::Grow(kind),
                value: Some(Value::new(value, self.source)),
                key: None,
                arithmetic: nature == Nature::Itself { arithmetic: true },
                anew: true,
                method: None,
            };
            self.index.ops.push(op);
        }
    }

    pub(crate) fn delete(&mut self, target: &Expr) {
        match target {
            Expr::Subscript(subscript) => {
                let action = if subscript.slice.is_slice_expr() { Action::Trim } else { Action::Remove };
                self.act(path_of(&subscript.value), subscript.value.range(), action);
                self.visit_expr(&subscript.value);
                self.visit_expr(&subscript.slice);
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| self.delete(target)),
            Expr::Attribute(attribute) => {
                self.act(path_of(target), target.range(), Action::Clear);
                self.visit_expr(&attribute.value);
            }
            _ => self.act(path_of(target), target.range(), Action::Clear),
        }
    }

    pub(crate) fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Call(call) => return self.call(call),
            Expr::Named(named) => {
                self.visit(&named.value);
                return self.walrus(&named.target, &named.value);
            }
            Expr::Lambda(lambda) => {
                let outer = self.enter_scope(ScopeKind::Lambda, String::new(), lambda.range(), None);
                if let Some(parameters) = &lambda.parameters {
                    for default in parameters.iter_non_variadic_params().filter_map(|p| p.default.as_deref())
                    {
                        self.visit(default);
                    }
                    self.parameters(parameters);
                }
                self.visit(&lambda.body);
                return self.leave_scope(outer);
            }
            Expr::ListComp(ast::ExprListComp { elt, generators, .. })
            | Expr::SetComp(ast::ExprSetComp { elt, generators, .. })
            | Expr::Generator(ast::ExprGenerator { elt, generators, .. }) => {
                return self.comprehension(expr, generators, &[elt]);
            }
            Expr::DictComp(ast::ExprDictComp { key, value, generators, .. }) => {
                let parts: Vec<&Expr> = key.iter().map(|key| &**key).chain([&**value]).collect();
                return self.comprehension(expr, generators, &parts);
            }
            Expr::Compare(compare) => self.compare(compare),
            Expr::Subscript(subscript) if subscript.ctx == ExprContext::Load => {
                let path = path_of(&subscript.value);
                match &*subscript.slice {
                    Expr::Slice(_) => self.act(path, subscript.value.range(), Action::Slice),
                    // A fixed key or position is no lookup of something computed before.
                    Expr::StringLiteral(_) | Expr::NumberLiteral(_) | Expr::UnaryOp(_) => {}
                    _ => self.act(path, subscript.value.range(), Action::Lookup),
                }
            }
            Expr::Attribute(ast::ExprAttribute { ctx: ExprContext::Load, .. })
            | Expr::Name(ast::ExprName { ctx: ExprContext::Load, .. }) => {
                let place = self.place(expr.range());
                self.index.reads.push((path_of(expr), place));
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }

    fn visit(&mut self, expr: &Expr) {
        self.visit_expr(expr);
    }

    /// A walrus inside a comprehension binds in the function around it.
    fn walrus(&mut self, target: &Expr, value: &Expr) {
        let inner = self.place(target.range()).scope;
        let mut scope = inner;
        while self.index.scopes[scope].kind == ScopeKind::Comprehension {
            scope = self.index.scopes[scope].parent.unwrap_or(0);
        }
        self.leave_scope(scope);
        self.bind(target, value);
        self.leave_scope(inner);
    }

    fn comprehension(&mut self, whole: &Expr, generators: &[ast::Comprehension], parts: &[&Expr]) {
        if let Some(first) = generators.first() {
            self.visit(&first.iter);
        }
        let outer = self.enter_scope(ScopeKind::Comprehension, String::new(), whole.range(), None);
        for (position, part) in generators.iter().enumerate() {
            if position > 0 {
                self.visit(&part.iter);
            }
            self.bind_element(&part.target, &part.iter);
            part.ifs.iter().for_each(|test| self.visit(test));
        }
        for part in parts {
            self.visit(part);
        }
        self.leave_scope(outer);
    }

    fn compare(&mut self, compare: &ast::ExprCompare) {
        for (op, right) in compare.ops.iter().zip(&compare.comparators) {
            if matches!(op, CmpOp::In | CmpOp::NotIn) {
                let keys = match path_of(right) {
                    // `k in d.keys()`
                    mut path if path.steps.ends_with(&[Step::Attr("keys".to_owned()), Step::Call]) => {
                        path.steps.truncate(path.steps.len() - 2);
                        path
                    }
                    path => path,
                };
                self.act(keys, right.range(), Action::Lookup);
            }
        }
        for side in std::iter::once(&*compare.left).chain(&compare.comparators) {
            for measured in measured(side) {
                self.act(path_of(measured), measured.range(), Action::LengthTest);
            }
        }
    }

    fn call(&mut self, call: &ast::ExprCall) {
        let callee = path_of(&call.func);
        let arguments = &call.arguments;
        let first = arguments.args.first();
        match &*call.func {
            Expr::Attribute(attribute) => {
                self.method(attribute, arguments);
                self.visit(&attribute.value);
            }
            func => self.visit(func),
        }
        match (callee.last_name(), first) {
            (Some("heappush" | "heappushpop"), Some(heap)) => {
                self.grow(heap, GrowKind::Heap, arguments.args.get(1), None);
            }
            (Some("heappop"), Some(heap)) => self.act(path_of(heap), heap.range(), Action::Remove),
            (Some("insort" | "insort_left" | "insort_right"), Some(list)) => {
                self.grow(list, GrowKind::Insert, arguments.args.get(1), None);
            }
            (Some("setattr"), Some(object)) => {
                if let [_, Expr::StringLiteral(name), value] = &*arguments.args {
                    let path = path_of(object).with(Step::Attr(name.value.to_str().to_owned()));
                    self.push_assignment(&path, object.range(), Some(value), Some(path_of(value)));
                    if let Some(op) = self.growth(object, GrowKind::Assign, Some(value), None) {
                        op.path = path;
                    }
                }
            }
            (Some("getattr" | "hasattr"), _) => {
                if let Some(Expr::StringLiteral(name)) = arguments.args.get(1) {
                    self.index.named_reads.insert(name.value.to_str().to_owned());
                }
            }
            _ => {}
        }
        let values = arguments.args.iter().chain(arguments.keywords.iter().map(|keyword| &keyword.value));
        for argument in values {
            // `register(self.records.append)`: grows whenever it is called back.
            if let Expr::Attribute(bound) = argument
                && let Some(kind) = growth_as_callback(bound.attr.as_str())
            {
                self.grow(&bound.value, kind, None, None);
            }
        }
        self.record_call(call, callee);
        self.visit_arguments(arguments);
    }

    fn record_call(&mut self, call: &ast::ExprCall, callee: Path) {
        if self.too_deep() {
            return;
        }
        let positional = call.arguments.args.iter().map(|arg| match arg {
            Expr::Starred(starred) => (None, true, &*starred.value),
            arg => (None, false, arg),
        });
        let named = call.arguments.keywords.iter().map(|keyword| {
            (
                Some(keyword.arg.as_ref().map_or(String::new(), ToString::to_string)),
                keyword.arg.is_none(),
                &keyword.value,
            )
        });
        let arguments = positional
            .chain(named)
            .map(|(name, starred, value)| Argument {
                name,
                starred,
                path: path_of(value),
                value: Value::new(value, self.source),
                members: match value {
                    Expr::Tuple(tuple) => tuple.elts.iter().map(path_of).collect(),
                    Expr::List(list) => list.elts.iter().map(path_of).collect(),
                    _ => Vec::new(),
                },
            })
            .collect();
        let place = self.place(call.range());
        let (callee_range, range) = (call.func.range(), call.range());
        let texts = texts_of(&call.arguments);
        self.index.calls.push(CallRecord { place, callee, callee_range, range, arguments, texts });
    }

    fn method(&mut self, attribute: &ast::ExprAttribute, arguments: &ast::Arguments) {
        let (method, args) = (attribute.attr.as_str(), &arguments.args);
        let named = |name: &str| {
            arguments
                .keywords
                .iter()
                .find(|keyword| keyword.arg.as_deref() == Some(name))
                .map(|keyword| &keyword.value)
        };
        // `list.append(xs, v)`: the container is the first argument.
        let unbound = matches!(&*attribute.value, Expr::Name(name)
            if matches!(name.id.as_str(), "list" | "dict" | "set" | "deque" | "OrderedDict"));
        let (container, args) = match args.split_first() {
            Some((first, rest)) if unbound => (first, rest),
            _ => (&*attribute.value, &**args),
        };
        let path = path_of(container);
        match method {
            "pop" | "popleft" | "popitem" | "remove" | "discard" | "get_nowait" | "task_done" => {
                self.act(path, container.range(), Action::Remove);
            }
            "get" if !path.is_opaque() => {
                let queue = args.is_empty() || matches!(args.first(), Some(Expr::BooleanLiteral(_)));
                self.act(path, container.range(), if queue { Action::Remove } else { Action::Lookup });
            }
            "clear" => self.act(path, container.range(), Action::Clear),
            // A context variable, bound to a value made from its own.
            "set" if args.first().is_some_and(|value| is_made_from(value, &path)) => {
                self.grow(container, GrowKind::Rebind, args.first(), None);
            }
            _ => {
                let Some((kind, position)) = growth_of(method) else { return };
                let value = args.get(position).or_else(|| named("item").or_else(|| named("value")));
                // `xs.append(*rows)` and a bare `d.update(a=b)` store no single expression.
                let value = value.filter(|value| !value.is_starred_expr());
                let keyed = matches!(kind, GrowKind::SetDefault | GrowKind::Subscript);
                if let Some(op) = self.growth(container, kind, value, args.first().filter(|_| keyed)) {
                    op.method = Some(method.to_owned());
                }
                if kind == GrowKind::SetDefault {
                    self.act(path_of(container), container.range(), Action::Lookup);
                }
            }
        }
    }
}

/// Texts in arguments of a call, those of calls inside it included.
fn texts_of(arguments: &ast::Arguments) -> Vec<String> {
    struct Texts(Vec<String>);
    impl<'a> Visitor<'a> for Texts {
        fn visit_expr(&mut self, expr: &'a Expr) {
            match expr {
                Expr::StringLiteral(text) => self.0.push(text.value.to_str().to_owned()),
                Expr::FString(text) => self.0.push(text.value.elements().map(part).collect()),
                _ => depth::deeper(|| visitor::walk_expr(self, expr)),
            }
        }
    }
    fn part(element: &ast::InterpolatedStringElement) -> &str {
        match element {
            ast::InterpolatedStringElement::Literal(text) => &text.value,
            ast::InterpolatedStringElement::Interpolation(_) => "{}",
        }
    }
    let mut texts = Texts(Vec::new());
    texts.visit_arguments(arguments);
    texts.0
}

/// Does a value mention `variable.get()`?
fn is_made_from(value: &Expr, variable: &Path) -> bool {
    let got = variable.clone().with(Step::Attr("get".to_owned())).with(Step::Call);
    !variable.is_opaque() && reads_of(value).contains(&got)
}

/// What `len(x)`, `x.qsize()` measure, in arithmetic too.
fn measured(side: &Expr) -> Vec<&Expr> {
    let mut parts = vec![side];
    let mut found = Vec::new();
    while let Some(part) = parts.pop() {
        match part {
            Expr::BinOp(binary) => parts.extend([&*binary.left, &*binary.right]),
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) if name.id.as_str() == "len" => found.extend(call.arguments.args.first()),
                Expr::Attribute(method) if matches!(method.attr.as_str(), "qsize" | "__len__") => {
                    found.push(&*method.value);
                }
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// Methods and attributes behind which nothing of the object itself is kept.
const LOOSE: &[&str] = &[
    "detach",
    "item",
    "tolist",
    "numpy",
    "shape",
    "size",
    "dtype",
    "device",
    "ndim",
    "numel",
    "dim",
    "data",
    "grad",
    "is_leaf",
    "requires_grad",
    "index",
    "count",
    "keys",
    "qsize",
];

/// Whether a path reads the thing at `target` itself, and not only its shape or a detached copy.
pub(crate) fn mentions(target: &Path, read: &Path) -> bool {
    match read.strip(target) {
        Some([Step::Attr(next), ..]) => !LOOSE.contains(&next.as_str()),
        Some(_) => true,
        None => false,
    }
}

/// What a value is, bound to `target`.
pub(crate) fn nature(target: &Path, value: &Expr, reads: &[Path]) -> Nature {
    let itself = reads.iter().any(|read| mentions(target, read));
    match value {
        Expr::Subscript(_) if itself => Nature::Part,
        Expr::ListComp(ast::ExprListComp { generators, .. })
        | Expr::SetComp(ast::ExprSetComp { generators, .. })
        | Expr::DictComp(ast::ExprDictComp { generators, .. })
            if itself && generators.iter().any(|part| !part.ifs.is_empty()) =>
        {
            Nature::Part
        }
        Expr::Call(call) if itself && bounded_call(call).is_some() => Nature::Part,
        Expr::BinOp(_) | Expr::UnaryOp(_) if itself => Nature::Itself { arithmetic: true },
        _ if itself => Nature::Itself { arithmetic: false },
        Expr::List(list) if list.elts.is_empty() => Nature::Empty,
        Expr::Tuple(tuple) if tuple.elts.is_empty() => Nature::Empty,
        Expr::Dict(dict) if dict.items.is_empty() => Nature::Empty,
        Expr::NoneLiteral(_) | Expr::NumberLiteral(_) => Nature::Empty,
        Expr::StringLiteral(text) if text.value.is_empty() => Nature::Empty,
        Expr::Call(call) if empties(call) => Nature::Empty,
        _ => Nature::Other,
    }
}

/// `list()`, `deque()`, `defaultdict(list)`, `deque([])`.
fn empties(call: &ast::ExprCall) -> bool {
    let path = path_of(&call.func);
    let Some(name) = path.last_name() else { return false };
    let empty = |expr: &Expr| match expr {
        Expr::List(list) => list.elts.is_empty(),
        Expr::Tuple(tuple) => tuple.elts.is_empty(),
        Expr::Dict(dict) => dict.items.is_empty(),
        _ => false,
    };
    match name {
        "list" | "dict" | "set" | "deque" | "OrderedDict" | "Counter" | "bytearray" => {
            call.arguments.args.first().is_none_or(empty)
                && (name != "dict" || call.arguments.keywords.is_empty())
        }
        "Queue" | "LifoQueue" | "SimpleQueue" | "PriorityQueue" => true,
        "defaultdict" => call.arguments.args.len() <= 1,
        _ => false,
    }
}

/// The limit that a call sets on the container it makes.
fn bounded_call(call: &ast::ExprCall) -> Option<&Expr> {
    let path = path_of(&call.func);
    let keyword = |name: &str| {
        call.arguments
            .keywords
            .iter()
            .find(|keyword| keyword.arg.as_deref() == Some(name))
            .map(|found| &found.value)
    };
    let limit = match path.last_name()? {
        "deque" => keyword("maxlen").or_else(|| call.arguments.args.get(1)),
        "Queue" | "LifoQueue" | "PriorityQueue" | "JoinableQueue" => {
            keyword("maxsize").or_else(|| call.arguments.args.first())
        }
        "LRUCache" | "TTLCache" | "LFUCache" | "FIFOCache" | "RRCache" => {
            keyword("maxsize").or_else(|| call.arguments.args.first())
        }
        _ => None,
    }?;
    let unlimited = matches!(limit, Expr::NoneLiteral(_) | Expr::UnaryOp(_))
        || matches!(limit, Expr::NumberLiteral(number)
            if matches!(&number.value, ast::Number::Int(value) if *value == ast::Int::ZERO));
    (!unlimited).then_some(limit)
}

/// The limit that a value sets on itself, as written: `100` of `deque(maxlen=100)`, `n` of `[None] * n`.
pub(crate) fn capacity(value: &Expr, source: &Source) -> Option<String> {
    let limit = match value {
        Expr::Call(call) => bounded_call(call)?,
        Expr::BinOp(binary) if binary.op == Operator::Mult && binary.left.is_list_expr() => &binary.right,
        _ => return None,
    };
    Some(source.inline(limit.range()))
}
