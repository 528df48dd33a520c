//! What a path stands for: variables by Python's scoping, attributes by class, through aliases, properties, returned
//! containers and parameters of helper functions.
//!
//! Aliases hold where their assignment can reach: of the assignments before a use the last one that is certain to
//! have run, and everything after it; in loops also what a later line of the same loop binds. Searches are bounded
//! in depth and in number of results.

use std::collections::HashMap;

use ruff_text_size::TextSize;

use crate::hint::Hint;
use crate::index::{Action, Assignment, Base, CallRecord, Class, Index, Nature, Op, Place, ScopeKind};
use crate::loads::growth_of;
use crate::path::{Path, Root, Step};
use crate::sites::GrowKind;

/// Aliases and calls that are followed one after another.
pub(crate) const MAX_DEPTH: usize = 5;
/// Ways that are followed for one path.
const MAX_WAYS: usize = 48;

/// One thing that a path may stand for.
#[derive(Debug, Clone)]
pub(crate) struct Meaning {
    pub(crate) base: Base,
    /// Subscripts behind the base; `None` for one that is no string.
    pub(crate) keys: Vec<Option<String>>,
    /// Statements of the calls that hand it over, innermost first.
    pub(crate) via: Vec<usize>,
    /// Reached through another name.
    pub(crate) aliased: bool,
}

/// Answers questions on an [`Index`].
#[derive(Debug)]
pub(crate) struct Resolver {
    /// Assignments by the variable (or the class's attribute) they bind.
    names: HashMap<Base, Vec<usize>>,
    /// Assignments through an object of a known class, by class and attribute.
    attributes: HashMap<(usize, String), Vec<usize>>,
    /// Each class with what it inherits from and what inherits from it.
    families: Vec<Vec<usize>>,
    /// Scopes of functions by where and as what they are defined.
    functions: HashMap<(usize, String), usize>,
    /// Classes by plain name.
    classes: HashMap<String, usize>,
    /// Calls of a function's scope, with the number of leading parameters that the call does not give.
    callers: HashMap<usize, Vec<Caller>>,
}

#[derive(Debug, Clone, Copy)]
struct Caller {
    call: usize,
    /// Parameters bound already: `self`.
    bound: usize,
    /// Arguments that are not handed on: the function itself in `partial(f, x)`.
    skip: usize,
    /// Arguments come as the tuple `args=(..)` of a thread or process.
    packed: bool,
}

/// One way to write a path: through an alias, an attribute, a caller.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) path: Path,
    pub(crate) place: Place,
    /// Statements of the calls that hand it over, innermost first.
    pub(crate) via: Vec<usize>,
}

/// State of one search.
struct Search {
    found: Vec<Way>,
    seen: Vec<(Path, usize, TextSize)>,
}

impl Resolver {
    pub(crate) fn new(index: &Index) -> Self {
        let mut resolver = Self {
            names: HashMap::new(),
            attributes: HashMap::new(),
            families: Vec::new(),
            functions: HashMap::new(),
            classes: HashMap::new(),
            callers: HashMap::new(),
        };
        for (id, class) in index.classes.iter().enumerate() {
            let plain = class.name.rsplit('.').next().unwrap_or(&class.name);
            resolver.classes.insert(plain.to_owned(), id);
        }
        resolver.families = resolver.related_classes(index);
        for (id, assignment) in index.assignments.iter().enumerate() {
            if let Some(name) = assignment.target.plain() {
                let base = index.lookup(name, assignment.place.scope);
                resolver.names.entry(base).or_default().push(id);
            }
        }
        // What an attribute's object is may itself rest on names only.
        for (id, assignment) in index.assignments.iter().enumerate() {
            let target = &assignment.target;
            if let [Step::Attr(name)] = target.steps.as_slice()
                && let Some(class) = resolver.class_of(index, &target.root, &[], assignment.place.scope)
            {
                resolver.attributes.entry((class, name.clone())).or_default().push(id);
            }
        }
        for (id, scope) in index.scopes.iter().enumerate() {
            if let (ScopeKind::Function, Some(parent)) = (scope.kind, scope.parent) {
                let plain = scope.name.rsplit('.').next().unwrap_or(&scope.name);
                resolver.functions.insert((parent, plain.to_owned()), id);
            }
        }
        for (id, call) in index.calls.iter().enumerate() {
            for (function, caller) in resolver.callees(index, id, call) {
                resolver.callers.entry(function).or_default().push(caller);
            }
        }
        resolver
    }

    /// Class whose instance (or which itself) a path is.
    pub(crate) fn class_of(&self, index: &Index, root: &Root, steps: &[Step], scope: usize) -> Option<usize> {
        self.class_within(index, root, steps, scope, 0)
    }

    fn class_within(
        &self,
        index: &Index,
        root: &Root,
        steps: &[Step],
        scope: usize,
        depth: usize,
    ) -> Option<usize> {
        if depth > MAX_DEPTH {
            return None;
        }
        let Some((last, before)) = steps.split_last() else {
            return match root {
                Root::Super => index.method_class(scope),
                Root::Name(name) => self.class_of_name(index, name, scope, depth),
                _ => None,
            };
        };
        let Step::Attr(attribute) = last else {
            // `Class()` is one of the class.
            return match (last, root) {
                (Step::Call, Root::Name(name)) if before.is_empty() => self.class_named(index, name, scope),
                _ => None,
            };
        };
        let class = self.class_within(index, root, before, scope, depth + 1)?;
        let bound = self.bindings_of(index, class, attribute);
        self.agreed(index, bound, depth)
    }

    fn class_named(&self, index: &Index, name: &str, scope: usize) -> Option<usize> {
        let known = *self.classes.get(name)?;
        // A parameter or variable of that name hides the class.
        let defined = index.scopes[index.classes[known].scope].parent;
        match index.lookup(name, scope) {
            Base::Global(_) => Some(known),
            Base::Local(id, _) if Some(id) == defined => Some(known),
            _ => None,
        }
    }

    fn class_of_name(&self, index: &Index, name: &str, scope: usize, depth: usize) -> Option<usize> {
        if let Some(class) = self.class_named(index, name, scope) {
            return Some(class);
        }
        match index.lookup(name, scope) {
            Base::Local(id, _) => {
                let owner = &index.scopes[id];
                if let Some(position) = owner.parameters.iter().position(|parameter| parameter.name == name) {
                    if position == 0 && owner.class.is_some() && !owner.is_static {
                        return owner.class;
                    }
                    let annotation = owner.parameters[position].annotation.as_ref();
                    return annotation.and_then(|known| self.classes.get(known).copied());
                }
                self.agreed(index, self.named(index, &Base::Local(id, name.to_owned())), depth)
            }
            found @ Base::Global(_) => self.agreed(index, self.named(index, &found), depth),
            _ => None,
        }
    }

    /// The one class that all assignments construct.
    fn agreed<'i>(
        &self,
        index: &'i Index,
        assignments: impl Iterator<Item = &'i Assignment>,
        depth: usize,
    ) -> Option<usize> {
        let mut agreed = None;
        for assignment in assignments.filter(|assignment| assignment.nature != Nature::Empty) {
            let scope = assignment.place.scope;
            let class = match (&assignment.callee, &assignment.source) {
                (Some(callee), _) => callee.plain().and_then(|name| self.class_named(index, name, scope)),
                (None, Some(source)) => {
                    self.class_within(index, &source.root, &source.steps, scope, depth + 1)
                }
                _ => None,
            }?;
            if *agreed.get_or_insert(class) != class {
                return None;
            }
        }
        agreed
    }

    /// Assignments to a variable.
    fn named<'i>(&self, index: &'i Index, base: &Base) -> impl Iterator<Item = &'i Assignment> {
        self.names.get(base).map_or(&[][..], Vec::as_slice).iter().map(|&id| &index.assignments[id])
    }

    /// Assignments to an attribute of a class, in any of its methods or bodies, bases and derived classes included.
    fn bindings_of<'i>(
        &self,
        index: &'i Index,
        class: usize,
        attribute: &str,
    ) -> impl Iterator<Item = &'i Assignment> {
        self.families[class].iter().flat_map(move |&member| {
            let through = self.attributes.get(&(member, attribute.to_owned()));
            let in_body = self.names.get(&Base::Attribute(Some(member), attribute.to_owned()));
            let ids = [through, in_body].into_iter().flatten().flatten();
            ids.map(|&id| &index.assignments[id])
        })
    }

    /// Whether one class is the other, or one inherits from the other.
    pub(crate) fn related(&self, one: usize, other: usize) -> bool {
        self.families[one].contains(&other)
    }

    fn related_classes(&self, index: &Index) -> Vec<Vec<usize>> {
        let bases = |class: &Class| -> Vec<usize> {
            class.bases.iter().filter_map(|name| self.classes.get(name).copied()).collect()
        };
        let direct: Vec<Vec<usize>> = index.classes.iter().map(bases).collect();
        let mut families: Vec<Vec<usize>> = (0..direct.len()).map(|class| vec![class]).collect();
        for class in 0..direct.len() {
            let mut above: Vec<usize> = vec![class];
            let mut at = 0;
            while at < above.len() {
                let next: Vec<usize> =
                    direct[above[at]].iter().filter(|base| !above.contains(base)).copied().collect();
                above.extend(next);
                at += 1;
            }
            for base in above.into_iter().skip(1) {
                for (one, other) in [(class, base), (base, class)] {
                    if !families[one].contains(&other) {
                        families[one].push(other);
                    }
                }
            }
        }
        families
    }

    /// The class with this name, a module prefix ignored.
    pub(crate) fn class_by_name(&self, index: &Index, name: &str) -> Option<usize> {
        let plain = name.rsplit('.').next().unwrap_or(name);
        index
            .classes
            .iter()
            .position(|class| name == class.name || name.ends_with(&format!(".{}", class.name)))
            .or_else(|| self.classes.get(plain).copied())
    }

    /// The method that an attribute of a class is.
    fn method(&self, index: &Index, class: usize, name: &str, depth: usize) -> Option<usize> {
        let own = self.functions.get(&(index.classes[class].scope, name.to_owned())).copied();
        own.or_else(|| {
            let bases = &index.classes[class].bases;
            let next = |base: &String| self.method(index, *self.classes.get(base)?, name, depth + 1);
            (depth < MAX_DEPTH).then(|| bases.iter().find_map(next)).flatten()
        })
    }

    /// The function that a path names, with the number of parameters bound by that.
    pub(crate) fn function_of(&self, index: &Index, path: &Path, scope: usize) -> Option<(usize, usize)> {
        match path.steps.split_last() {
            None => {
                let name = path.root_name()?;
                if let Some(class) = self.class_named(index, name, scope) {
                    return self.method(index, class, "__init__", 0).map(|method| (method, 1));
                }
                let defined = match index.lookup(name, scope) {
                    Base::Local(id, _) => id,
                    Base::Global(_) => 0,
                    _ => return None,
                };
                self.functions.get(&(defined, name.to_owned())).map(|&function| (function, 0))
            }
            Some((Step::Attr(name), before)) => {
                let class = self.class_of(index, &path.root, before, scope)?;
                let method = self.method(index, class, name, 0)?;
                let by_class = before.is_empty()
                    && path.root_name().is_some_and(|root| self.class_named(index, root, scope).is_some());
                let bound = usize::from(!by_class && !index.scopes[method].is_static);
                Some((method, bound))
            }
            _ => None,
        }
    }

    fn callees(&self, index: &Index, id: usize, call: &CallRecord) -> Vec<(usize, Caller)> {
        let mut found = Vec::new();
        let scope = call.place.scope;
        if let Some((function, bound)) = self.function_of(index, &call.callee, scope) {
            found.push((function, Caller { call: id, bound, skip: 0, packed: false }));
        }
        for (position, argument) in call.arguments.iter().enumerate() {
            let target = argument.name.as_deref() == Some("target");
            let first = position == 0
                && argument.name.is_none()
                && matches!(
                    call.callee.last_name(),
                    Some("partial" | "submit" | "call_soon" | "apply_async")
                );
            if (target || first)
                && let Some((function, bound)) = self.function_of(index, &argument.path, scope)
            {
                found.push((function, Caller { call: id, bound, skip: 1, packed: target }));
            }
        }
        found
    }

    /// Calls of the function with this scope.
    pub(crate) fn is_called(&self, function: usize) -> bool {
        self.callers.get(&function).is_some_and(|callers| !callers.is_empty())
    }

    /// Everything that a path may stand for at a place, what it says literally first.
    pub(crate) fn meanings(
        &self,
        index: &Index,
        path: &Path,
        place: Place,
        bound_anew: bool,
    ) -> Vec<Meaning> {
        let ways = self.ways(index, path, place, bound_anew).into_iter().enumerate();
        ways.map(|(position, way)| {
            let (base, keys) = self.literally(index, &way.path, way.place.scope);
            Meaning { base, keys, via: way.via, aliased: position > 0 }
        })
        .collect()
    }

    /// Every way to write what is at a path, the path itself first. What is `bound_anew` is the variable or attribute
    /// itself, not what another name for its old value means.
    pub(crate) fn ways(&self, index: &Index, path: &Path, place: Place, bound_anew: bool) -> Vec<Way> {
        let mut search = Search { found: Vec::new(), seen: Vec::new() };
        if bound_anew && path.steps.is_empty() {
            return vec![Way { path: path.clone(), place, via: Vec::new() }];
        }
        if let (true, [Step::Attr(_)]) = (bound_anew, path.steps.as_slice()) {
            search.found.push(Way { path: path.clone(), place, via: Vec::new() });
            self.through_root(index, path, place, &[], &mut search);
        } else {
            self.expand(index, path, place, &[], &mut search);
        }
        search.found
    }

    fn expand(&self, index: &Index, path: &Path, place: Place, via: &[usize], search: &mut Search) {
        let key = (path.clone(), place.scope, place.offset);
        if search.found.len() >= MAX_WAYS || search.seen.len() > MAX_DEPTH || search.seen.contains(&key) {
            return;
        }
        search.found.push(Way { path: path.clone(), place, via: via.to_vec() });
        search.seen.push(key);
        self.through_root(index, path, place, via, search);
        self.through_attribute(index, path, place, via, search);
        self.through_result(index, path, place, via, search);
        search.seen.pop();
    }

    /// The path as it stands: its last attribute, or its root.
    fn literally(&self, index: &Index, path: &Path, scope: usize) -> (Base, Vec<Option<String>>) {
        let mut keys = Vec::new();
        for (at, step) in path.steps.iter().enumerate().rev() {
            match step {
                Step::Key(key) => keys.push(Some(key.clone())),
                Step::Item => keys.push(None),
                Step::Attr(name) => {
                    keys.reverse();
                    let class = self.class_of(index, &path.root, &path.steps[..at], scope);
                    return (Base::Attribute(class, name.clone()), keys);
                }
                Step::Slice | Step::Call => return (Base::Other, Vec::new()),
            }
        }
        keys.reverse();
        (path.root_name().map_or(Base::Other, |name| index.lookup(name, scope)), keys)
    }

    /// Through what the root variable is bound to, or what callers give for it.
    fn through_root(&self, index: &Index, path: &Path, place: Place, via: &[usize], search: &mut Search) {
        let Some(name) = path.root_name() else { return };
        let base = index.lookup(name, place.scope);
        for assignment in self.reaching(index, &base, place) {
            if let Some(source) = &assignment.source {
                self.expand(index, &source.join(&path.steps), assignment.place, via, search);
            }
        }
        let Base::Local(owner, _) = base else { return };
        let Some(position) = index.scopes[owner].parameters.iter().position(|known| known.name == name)
        else {
            return;
        };
        for caller in self.callers.get(&owner).map_or(&[][..], Vec::as_slice) {
            let call = &index.calls[caller.call];
            let Some(given) =
                given(call, *caller, name, position, index.scopes[owner].parameters[position].keyword_only)
            else {
                continue;
            };
            if given.is_opaque() || via.contains(&call.place.statement) {
                continue;
            }
            let mut via = via.to_vec();
            via.push(call.place.statement);
            self.expand(index, &given.join(&path.steps), call.place, &via, search);
        }
    }

    /// Through what the first attribute of an instance is bound to: `self.store = SHARED`, a property.
    fn through_attribute(
        &self,
        index: &Index,
        path: &Path,
        place: Place,
        via: &[usize],
        search: &mut Search,
    ) {
        let Some((Step::Attr(name), rest)) = path.steps.split_first() else { return };
        let Some(class) = self.class_of(index, &path.root, &[], place.scope) else { return };
        for assignment in self.bindings_of(index, class, name) {
            // An attribute made from itself says nothing new.
            if let Some(source) = assignment.source.as_ref().filter(|_| assignment.nature == Nature::Other) {
                self.expand(index, &source.join(rest), assignment.place, via, search);
            }
        }
        if let Some(method) = self.method(index, class, name, 0).filter(|&id| index.scopes[id].is_property) {
            for (returned, at) in &index.scopes[method].returns {
                self.expand(index, &returned.join(rest), *at, via, search);
            }
        }
    }

    /// Through what a called function of this file returns: `self.store().append(x)`.
    fn through_result(&self, index: &Index, path: &Path, place: Place, via: &[usize], search: &mut Search) {
        let Some(at) = path.steps.iter().position(|step| *step == Step::Call) else { return };
        let callee = Path { root: path.root.clone(), steps: path.steps[..at].to_vec() };
        if let Some((function, _)) = self.function_of(index, &callee, place.scope) {
            for (returned, at_return) in &index.scopes[function].returns {
                self.expand(index, &returned.join(&path.steps[at + 1..]), *at_return, via, search);
            }
        }
    }

    /// What callers give for a parameter, and its default.
    pub(crate) fn given_hints<'i>(
        &self,
        index: &'i Index,
        owner: usize,
        name: &str,
    ) -> Vec<(&'i Hint, Place)> {
        let scope = &index.scopes[owner];
        let Some(position) = scope.parameters.iter().position(|known| known.name == name) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        // `None` and other placeholders say nothing of what is given.
        if let Some(default @ Hint::Scalar) = &scope.parameters[position].default {
            found
                .push((default, Place { scope: owner, block: 0, statement: 0, offset: scope.range.start() }));
        }
        for caller in self.callers.get(&owner).map_or(&[][..], Vec::as_slice) {
            let call = &index.calls[caller.call];
            let argument =
                call.arguments.iter().find(|argument| argument.name.as_deref() == Some(name)).or_else(|| {
                    let at = (position + caller.skip).checked_sub(caller.bound)?;
                    call.arguments.get(at).filter(|argument| argument.name.is_none() && !argument.starred)
                });
            if let Some(argument) = argument {
                found.push((&argument.value.hint, call.place));
            }
        }
        found
    }

    /// What is bound to a path that is the same at a place: a variable, an attribute of a class of this file, else what is
    /// written alike.
    pub(crate) fn bindings<'i>(&self, index: &'i Index, path: &Path, place: Place) -> Vec<&'i Assignment> {
        if let Some(name) = path.plain() {
            return self.reaching(index, &index.lookup(name, place.scope), place).collect();
        }
        if let Some((Step::Attr(name), before)) = path.steps.split_last()
            && let Some(class) = self.class_of(index, &path.root, before, place.scope)
        {
            return self.bindings_of(index, class, name).collect();
        }
        index.assignments.iter().filter(|assignment| assignment.target == *path).collect()
    }

    /// Assignments to a variable that can have run last at a place.
    pub(crate) fn reaching<'i>(
        &self,
        index: &'i Index,
        base: &Base,
        place: Place,
    ) -> impl Iterator<Item = &'i Assignment> {
        let all: Vec<&Assignment> = self.named(index, base).collect();
        let same_function = |assignment: &&Assignment| {
            index.function_scope(assignment.place.scope) == index.function_scope(place.scope)
        };
        let Base::Local(..) = base else { return all.into_iter() };
        if !all.iter().all(same_function) {
            return all.into_iter();
        }
        let earlier = |found: &Assignment| {
            let inside_value = found.value.is_some_and(|value| value.contains(place.offset));
            found.place.offset <= place.offset && !(found.place.statement == place.statement && inside_value)
        };
        let certain =
            all.iter().rposition(|found| earlier(found) && index.encloses(found.place.block, place.block));
        let loops: Vec<usize> = index.loops_around(place.block).collect();
        // A later line of a shared loop, unless each round binds the name before the use.
        let comes_round = |found: &Assignment| {
            let mut shared = index.loops_around(found.place.block).filter(|id| loops.contains(id)).peekable();
            let bound_first = |id: usize| {
                certain.is_some_and(|at| index.loops_around(all[at].place.block).any(|known| known == id))
            };
            shared.peek().is_some() && !shared.all(bound_first)
        };
        let kept: Vec<&Assignment> = all
            .iter()
            .enumerate()
            .filter(|(at, found)| {
                if earlier(found) {
                    // `for x in (a, b)` binds one name to several things at once.
                    let beside = |certain: usize| all[certain].place.statement == found.place.statement;
                    certain.is_none_or(|certain| *at >= certain || beside(certain))
                } else {
                    comes_round(found)
                }
            })
            .map(|(_, found)| *found)
            .collect();
        kept.into_iter()
    }

    /// Whether an operation calls a method that a class of this file defines: its body says what grows.
    pub(crate) fn is_own_method(&self, index: &Index, op: &Op) -> bool {
        let called = |method: &String| op.path.clone().with(Step::Attr(method.clone()));
        op.method
            .as_ref()
            .is_some_and(|method| self.function_of(index, &called(method), op.place.scope).is_some())
    }

    /// What calls of bound methods under other names grow: `add = self.xs.append; add(v)`.
    pub(crate) fn bound_methods(&self, index: &Index) -> Vec<Op> {
        let grows = |assignment: &&Assignment| {
            assignment.source.as_ref().is_some_and(|path| ends_in_growth(path).is_some())
        };
        let names: Vec<&str> =
            index.assignments.iter().filter(grows).filter_map(|found| found.target.last_name()).collect();
        let mut ops = Vec::new();
        for call in &index.calls {
            if !call.callee.last_name().is_some_and(|name| names.contains(&name)) {
                continue;
            }
            for way in self.ways(index, &call.callee, call.place, false).into_iter().skip(1) {
                let Some((path, kind, position)) = ends_in_growth(&way.path) else { continue };
                let place = Place { offset: call.place.offset, statement: call.place.statement, ..way.place };
                let value = call.arguments.get(position).filter(|argument| argument.name.is_none());
                ops.push(Op {
                    place: Place { block: call.place.block, ..place },
                    path,
                    container: call.callee_range,
                    action: Action::Grow(kind),
                    value: value.map(|argument| argument.value.clone()),
                    key: None,
                    arithmetic: false,
                    anew: false,
                    method: None,
                });
                break;
            }
        }
        ops
    }
}

/// What a call gives for a parameter.
fn given(call: &CallRecord, caller: Caller, name: &str, position: usize, keyword_only: bool) -> Option<Path> {
    if caller.packed {
        let packed = call.arguments.iter().find(|argument| argument.name.as_deref() == Some("args"))?;
        return packed.members.get(position.checked_sub(caller.bound)?).cloned();
    }
    if let Some(named) = call.arguments.iter().find(|argument| argument.name.as_deref() == Some(name)) {
        return Some(named.path.clone());
    }
    let at = (position + caller.skip).checked_sub(caller.bound)?;
    let before = call.arguments.get(..=at)?;
    let plain = before.iter().all(|argument| argument.name.is_none() && !argument.starred);
    (plain && !keyword_only).then(|| before[at].path.clone())
}

/// The growth that a path ends with: `self.xs.append` without a call.
fn ends_in_growth(path: &Path) -> Option<(Path, GrowKind, usize)> {
    let (Step::Attr(method), before) = path.steps.split_last()? else { return None };
    let (kind, position) = growth_of(method)?;
    Some((Path { root: path.root.clone(), steps: before.to_vec() }, kind, position))
}
