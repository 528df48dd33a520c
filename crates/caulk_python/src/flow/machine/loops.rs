//! Loops: what they iterate over, how often they run, and what goes from one iteration into the next.

use ruff_python_ast::{self as ast, Comprehension, Expr, Stmt};
use rustc_hash::FxHashSet;

use crate::flow::event::{Guards, Loop, LoopKind, Place, What};
use crate::flow::heap::Shape;
use crate::flow::ids::{LoopId, PlaceId};
use crate::flow::joined::is_same;
use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::guards::{self, while_kind};
use crate::flow::scopes::located;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Literal, Objects, Traits, Value};
use crate::library::roles;
use crate::project::Location;

/// Loops inside one another whose bodies are run twice to see what is carried around.
const MAX_CARRIED: usize = 4;
/// Constant numbers of iterations up to which a loop is no repetition.
const FEW: i64 = 16;
/// Constant numbers of iterations from which a loop runs many times, whatever its name.
const MANY: i64 = 9;

impl<'p> Machine<'p> {
    fn loop_id(&mut self, f: &Frame, at: Location, header: Location, kind: LoopKind) -> LoopId {
        if let Some(&known) = self.loop_ids.get(&at) {
            let told = &mut self.loops[known.0 as usize].kind;
            // One caller may know more of what is gone through than another.
            if *told == LoopKind::Items {
                *told = kind;
            }
            return known;
        }
        let id = LoopId(self.loops.len() as u32);
        let function = Some(f.function);
        self.loops.push(Loop {
            at: Some(at),
            header: Some(header),
            kind,
            counted: false,
            // Until it is gone through.
            at_most: Some(0),
            function,
        });
        self.loop_ids.insert(at, id);
        id
    }

    pub(crate) fn for_loop(&mut self, f: &mut Frame, stmt: &'p ast::StmtFor) {
        let iterated = self.eval(f, &stmt.iter);
        let kind = match self.loop_kind(f, &stmt.target, &stmt.iter, &iterated) {
            // Requests, messages: as many as somebody sends.
            LoopKind::Items if stmt.is_async => LoopKind::Batches,
            LoopKind::Items if steps_its_own(&stmt.target, &stmt.body) => LoopKind::Parts,
            kind => kind,
        };
        let id = self.loop_id(f, located(f.file, stmt), located(f.file, &*stmt.iter), kind);
        self.count(f, id, &stmt.iter, &iterated);
        let element = self.loop_element(f, &stmt.target, &stmt.iter, &iterated, kind);
        if element.traits.has(Traits::FRAME) {
            self.frame_loops.insert(id);
        }
        // A generator's body runs on with each turn.
        let running: Vec<_> =
            iterated.objects.iter().filter_map(|object| self.generators.get(&object).copied()).collect();
        let counted = f.counters.len();
        let counter = counter_of(stmt).map(|name| self.symbols.at(&name.node_index, name.id.as_str()));
        f.counters.extend(counter.map(|name| (id, name)));
        for element in self.listed(f, &stmt.iter).unwrap_or_else(|| vec![element]) {
            self.repeat(f, id, &stmt.body, &stmt.orelse, |machine, f| {
                let at = located(f.file, &*stmt.iter);
                for generator in &running {
                    f.event(What::Call(*generator), at);
                }
                machine.assign(f, &stmt.target, element, false);
            });
        }
        f.counters.truncate(counted);
    }

    /// The objects that a loop over more names than a value has room for goes through, as many at a time as it has: each is
    /// emptied by `for rows in (self.states, self.actions, ...): rows.clear()`.
    fn listed(&mut self, f: &mut Frame, iter: &'p Expr) -> Option<Vec<Value>> {
        let (Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. })) = iter else {
            return None;
        };
        let are_names = elts.iter().all(|name| matches!(name, Expr::Name(_) | Expr::Attribute(_)));
        if elts.len() <= Objects::ROOM || !are_names {
            return None;
        }
        let values: Vec<Value> = elts.iter().map(|name| self.eval(f, name)).collect();
        let joined = |some: &[Value]| some.iter().fold(Value::NOTHING, Value::join);
        Some(values.chunks(Objects::ROOM).map(joined).collect())
    }

    /// How many of the loops around an `if` go through its body again and again: not those inside of one whose first turn,
    /// or another by its number, the condition asks for: `for i in range(n): if i == 0:`.
    pub(super) fn repeating(&self, f: &Frame, test: &Expr) -> Option<usize> {
        let counter = guards::asked_turn(test)?;
        let name = self.symbols.find(counter.id.as_str())?;
        let (counted, _) = f.counters.iter().rfind(|(_, counter)| *counter == name)?;
        f.loops.iter().rposition(|id| id == counted)
    }

    pub(crate) fn while_loop(&mut self, f: &mut Frame, stmt: &'p ast::StmtWhile) {
        let kind = match taken(&stmt.body) {
            Some((target, items)) => {
                let iterated = self.eval(f, items);
                self.loop_kind(f, target, items, &iterated)
            }
            None => while_kind(&stmt.test),
        };
        let id = self.loop_id(f, located(f.file, stmt), located(f.file, &*stmt.test), kind);
        self.loops[id.0 as usize].at_most = None;
        self.repeat(f, id, &stmt.body, &stmt.orelse, |machine, f| {
            machine.eval(f, &stmt.test);
        });
    }

    /// Runs a body until what its variables may hold at its start is known.
    fn repeat(
        &mut self,
        f: &mut Frame,
        id: LoopId,
        body: &'p [Stmt],
        orelse: &'p [Stmt],
        head: impl Fn(&mut Self, &mut Frame),
    ) {
        let statement = f.statement;
        let (guards, once) = (f.guards, f.once);
        f.guards = Guards::default();
        if guards.once() {
            f.once = u8::try_from(f.loops.len()).ok();
        }
        let passes = if f.loops.len() < MAX_CARRIED { 2 } else { 1 };
        let noted = f.events.len();
        let mut breaks = Vec::new();
        f.loops.push(id);
        for pass in 0..passes {
            let start = f.slots.clone();
            if pass > 0 {
                self.mark_carried(f, id, noted);
            }
            f.events.truncate(noted);
            f.breaks.push(Vec::new());
            f.continues.push(Vec::new());
            f.statement = statement;
            head(self, f);
            self.suite(f, body);
            for slots in f.continues.pop().unwrap_or_default() {
                f.join(&slots, true);
            }
            breaks = f.breaks.pop().unwrap_or_default();
            // It may run not at all, or again.
            f.join(&start, true);
        }
        f.loops.pop();
        (f.guards, f.once) = (guards, once);
        f.statement = statement;
        self.suite(f, orelse);
        for slots in breaks {
            f.join(&slots, true);
        }
    }

    /// What variables hold at the start of another iteration comes from the one before, if that one bound them.
    fn mark_carried(&mut self, f: &mut Frame, id: LoopId, noted: usize) {
        let bound: FxHashSet<PlaceId> =
            f.events[noted..].iter().filter_map(|event| event.what.bound()).collect();
        let definition = self.scopes.function(f.function);
        let names: Vec<_> = definition.slots.iter().map(|(name, slot)| (*name, *slot as usize)).collect();
        for (name, slot) in names {
            if f.slots[slot].kinds.has(Kinds::TENSOR) {
                let place = self.place(Place::Variable(f.function, name, id));
                if bound.contains(&place) {
                    f.slots[slot].carried.put(place);
                }
            }
        }
    }

    /// A comprehension's loops, around what it makes.
    pub(crate) fn comprehend(
        &mut self,
        f: &mut Frame,
        generators: &'p [Comprehension],
        make: &mut dyn FnMut(&mut Self, &mut Frame),
    ) {
        let Some((first, rest)) = generators.split_first() else {
            make(self, f);
            return;
        };
        let iterated = self.eval(f, &first.iter);
        let kind = self.loop_kind(f, &first.target, &first.iter, &iterated);
        let id = self.loop_id(f, located(f.file, first), located(f.file, &first.iter), kind);
        self.count(f, id, &first.iter, &iterated);
        let element = self.loop_element(f, &first.target, &first.iter, &iterated, kind);
        f.loops.push(id);
        self.assign(f, &first.target, element, false);
        for test in &first.ifs {
            self.eval(f, test);
        }
        self.comprehend(f, rest, make);
        f.loops.pop();
    }

    /// How often a loop over something runs.
    fn loop_kind(&mut self, f: &mut Frame, target: &Expr, iter: &'p Expr, iterated: &Value) -> LoopKind {
        let (inner, wrapped) = unwrapped(iter);
        let target_name = match target {
            Expr::Tuple(tuple) => tuple.elts.first().and_then(last_name),
            other => last_name(other),
        }
        .unwrap_or("_");
        if let Expr::Call(call) = inner
            && matches!(last_name(&call.func), Some("range" | "trange" | "count"))
        {
            let bound = match &*call.arguments.args {
                [] => None,
                [stop] | [_, stop, ..] => Some(stop),
            };
            let names = || bound.and_then(last_name).into_iter().chain([target_name]);
            if let Some(bound) = bound
                && let Literal::Int(times) = self.eval(f, bound).literal
                && times <= FEW
                && !names().any(|name| roles::is_epoch(name) || roles::is_step(name))
            {
                return LoopKind::Times(times.max(0) as u32);
            }
            // `range(len(self.layers))`.
            let counted = match bound {
                Some(Expr::Call(len)) if last_name(&len.func) == Some("len") => {
                    len.arguments.args.first().and_then(last_name)
                }
                _ => None,
            };
            return if names().any(roles::is_epoch) {
                LoopKind::Epochs
            } else if names().any(roles::is_fold) {
                LoopKind::Folds
            } else if names().chain(counted).any(roles::is_part) {
                LoopKind::Parts
            } else if counted.is_some_and(roles::is_loader) {
                LoopKind::Batches
            } else if names().any(roles::is_step) {
                LoopKind::Steps
            } else {
                LoopKind::Items
            };
        }
        if iterated.kinds.has(Kinds::LOADER) || last_name(inner).is_some_and(roles::is_loader) {
            return LoopKind::Batches;
        }
        if iterated.traits.has(Traits::LEAF) || iterated.kinds.has(Kinds::MODULE) {
            return LoopKind::Parts;
        }
        match inner {
            Expr::Tuple(_) | Expr::List(_) | Expr::Set(_) | Expr::Dict(_) => LoopKind::Times(0),
            Expr::Name(name) if is_constant(&name.id) && self.is_written_out(f, name) => LoopKind::Times(0),
            _ => {
                let names = || last_name(inner).into_iter().chain([target_name]);
                if last_name(inner) == Some("split") && !wrapped || names().any(roles::is_fold) {
                    LoopKind::Folds
                } else if roles::is_epoch(target_name) {
                    LoopKind::Epochs
                } else if names().any(|name| name == "batch" || name == "batches") {
                    LoopKind::Batches
                } else if names().any(roles::is_part) {
                    LoopKind::Parts
                } else {
                    LoopKind::Items
                }
            }
        }
    }

    /// Takes in what is known of a loop's turns: a loader is gone through, or a range of numbers.
    fn count(&mut self, f: &mut Frame, id: LoopId, iter: &'p Expr, iterated: &Value) {
        let (inner, _) = unwrapped(iter);
        let mut counted = iterated.only(Kinds::LOADER);
        let mut most = None;
        if let Expr::Call(call) = inner
            && matches!(last_name(&call.func), Some("range" | "trange" | "count"))
        {
            let args = &call.arguments.args;
            let stop = args.get(1).or(args.first());
            let times = stop.map(|stop| self.eval(f, stop).literal);
            counted = match times {
                Some(Literal::Int(times)) => {
                    most = u32::try_from(times).ok();
                    times > MANY
                }
                Some(_) => false,
                None => last_name(&call.func) == Some("count"),
            };
        }
        let known = &mut self.loops[id.0 as usize];
        known.counted |= counted;
        // One caller may have it turn more often than another.
        known.at_most = known.at_most.zip(most).map(|(one, other)| one.max(other));
    }

    /// Whether something is made by listing what is in it.
    fn is_written_out(&mut self, f: &mut Frame, name: &ast::ExprName) -> bool {
        let value = self.name(f, name);
        !value.objects.is_empty()
            && value.objects.iter().all(|object| {
                let known = self.heap.get(object);
                let text = known.at.map_or("", |at| self.project.text(at));
                let displayed = text.starts_with(['[', '(', '{']) && !text.contains(" for ");
                matches!(known.shape, Shape::List | Shape::Tuple | Shape::Dict | Shape::Set) && displayed
            })
    }

    /// What a loop's variable holds.
    fn loop_element(
        &mut self,
        f: &mut Frame,
        target: &Expr,
        iter: &Expr,
        iterated: &Value,
        kind: LoopKind,
    ) -> Value {
        let mut element = self.element_of(f, *iterated);
        let (inner, wrapped) = unwrapped(iter);
        let counts = matches!(inner, Expr::Call(call) if matches!(last_name(&call.func), Some("range" | "trange" | "count")));
        if counts && !wrapped {
            element = element.with(match kind {
                LoopKind::Folds => Traits::FOLD.with(Traits::COUNTER).with(Traits::RESTARTS),
                LoopKind::Epochs => Traits::EPOCH.with(Traits::COUNTER).with(Traits::RESTARTS),
                LoopKind::Steps => Traits::TURN.with(Traits::COUNTER).with(Traits::RESTARTS),
                _ => Traits::TURN,
            });
        } else if kind == LoopKind::Folds {
            element = element.with(Traits::FOLD);
        }
        // Whatever the loop counts up to.
        if last_name(target).is_some_and(|name| name.to_ascii_lowercase().contains("fold")) {
            element = element.with(Traits::FOLD);
        }
        if kind == LoopKind::Batches && is_numbered(iter) {
            let number =
                Value::of(Kinds::NUMBER).with(Traits::TURN.with(Traits::COUNTER).with(Traits::RESTARTS));
            let first = self.position(0);
            for pair in element.objects.iter() {
                self.heap.set_field(pair, first, number);
            }
        }
        if kind == LoopKind::Batches {
            let number = element.objects.iter().any(|object| self.heap.shape(object) == Shape::Tuple);
            if element.kinds.has(Kinds::UNKNOWN) || element.is_nothing() && !number {
                element = Value::of(Kinds::TENSOR.with(Kinds::UNKNOWN)).with(Traits::DATA);
            }
        }
        element
    }
}

/// Each turn makes a step of another optimizer: `for net, opt in zip(nets, opts): ..; opt.step()`. Such a loop goes through an
/// ensemble in one step of a training.
fn steps_its_own(target: &Expr, body: &[Stmt]) -> bool {
    let is_bound = |expr: &Expr| match target {
        Expr::Tuple(tuple) => tuple.elts.iter().any(|one| is_same(one, expr)),
        one => is_same(one, expr),
    };
    body.iter().any(|stmt| {
        let Stmt::Expr(step) = stmt else { return false };
        let Expr::Call(call) = &*step.value else { return false };
        matches!(&*call.func, Expr::Attribute(method) if method.attr.as_str() == "step" && is_bound(&method.value))
    })
}

/// A `while` that goes through something, by `x = next(items)` until `StopIteration`: target and items.
fn taken(body: &[Stmt]) -> Option<(&Expr, &Expr)> {
    let Stmt::Try(attempt) = body.first()? else { return None };
    let Stmt::Assign(assign) = attempt.body.first()? else { return None };
    let Expr::Call(call) = &*assign.value else { return None };
    let ends = attempt.handlers.iter().any(|ast::ExceptHandler::ExceptHandler(handler)| {
        let stops = handler.type_.as_deref().and_then(last_name) == Some("StopIteration");
        stops && matches!(handler.body.last(), Some(Stmt::Break(_) | Stmt::Return(_)))
    });
    let takes = last_name(&call.func) == Some("next") && ends;
    takes.then_some((assign.targets.first()?, call.arguments.args.first()?))
}

/// What `enumerate`, `tqdm`, `zip`, `iter` and the like iterate over, and whether one of them was around it.
fn unwrapped(iter: &Expr) -> (&Expr, bool) {
    if let Expr::Call(call) = iter
        && matches!(
            last_name(&call.func),
            Some(
                "enumerate"
                    | "tqdm"
                    | "zip"
                    | "iter"
                    | "track"
                    | "islice"
                    | "reversed"
                    | "list"
                    | "sorted"
                    | "cycle"
                    | "progress_bar"
                    | "notebook_tqdm"
            )
        )
        && let Some(first) = call.arguments.args.first()
    {
        let counts = matches!(last_name(&call.func), Some("enumerate" | "zip"));
        let (inner, wrapped) = unwrapped(first);
        return (inner, wrapped || counts);
    }
    (iter, false)
}

/// `enumerate(loader)`.
fn is_numbered(iter: &Expr) -> bool {
    matches!(iter, Expr::Call(call) if last_name(&call.func) == Some("enumerate"))
}

/// `CLASSES`.
fn is_constant(name: &str) -> bool {
    name.len() > 1
        && name.chars().all(|letter| letter.is_ascii_uppercase() || matches!(letter, '_' | '0'..='9'))
}

/// The variable that counts the turns of a loop: `for i in range(n)`, `for i, x in enumerate(xs)`.
fn counter_of(stmt: &ast::StmtFor) -> Option<&ast::ExprName> {
    let Expr::Call(call) = &*stmt.iter else { return None };
    match (last_name(&call.func)?, &*stmt.target) {
        ("range" | "trange", target) => target.as_name_expr(),
        ("enumerate", Expr::Tuple(pair)) => pair.elts.first()?.as_name_expr(),
        _ => None,
    }
}
