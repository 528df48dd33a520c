//! A function while it is run: its variables, the loops and conditions around the current statement, what happened.

use crate::flow::event::{Event, Guards, What};
use crate::flow::heap::{Maker, Shape};
use crate::flow::ids::{FunctionId, LoopId, ObjectId, ValueId};
use crate::flow::machine::{Callee, Machine};
use crate::flow::scopes::Body;
use crate::flow::symbols::Symbol;
use crate::flow::value::Value;
use crate::project::{FileId, Location};

pub(crate) struct Frame {
    pub(crate) function: FunctionId,
    pub(crate) file: FileId,
    /// Variables of the function around it.
    pub(crate) closure: Option<ObjectId>,
    /// Its own variables, where inner functions share them.
    pub(crate) variables: Option<ObjectId>,
    pub(crate) maker: Maker,
    pub(crate) receiver: Option<ObjectId>,
    /// Which call of the function it is, by the values that it is given.
    pub(crate) call: u64,
    pub(crate) slots: Vec<Value>,
    /// The statement can be reached.
    pub(crate) live: bool,
    pub(crate) recording: bool,
    pub(crate) loops: Vec<LoopId>,
    /// Loops around the statement whose turns a variable counts: `for i, x in enumerate(xs)`.
    pub(crate) counters: Vec<(LoopId, Symbol)>,
    /// Conditions inside the innermost loop.
    pub(crate) guards: Guards,
    /// The loops that a condition which holds once is inside of, where one is around a loop.
    pub(crate) once: Option<u8>,
    pub(crate) statement: Location,
    pub(crate) events: Vec<Event>,
    pub(crate) event_loops: Vec<LoopId>,
    /// Arguments of noted calls.
    pub(crate) given: Vec<(Option<Symbol>, ValueId)>,
    /// Where `loops` was last written into `event_loops`.
    noted: Option<(u32, u32)>,
    pub(crate) result: Value,
    pub(crate) yielded: Value,
    /// Variables where loops are left by `break`, and started again by `continue`, the innermost last.
    pub(crate) breaks: Vec<Vec<Vec<Value>>>,
    pub(crate) continues: Vec<Vec<Vec<Value>>>,
}

impl Frame {
    pub(crate) fn new(machine: &mut Machine<'_>, callee: Callee) -> Self {
        let Callee { function, closure, maker, receiver, recording } = callee;
        let definition = machine.scopes.function(function);
        let (file, location) = (definition.file, definition.location);
        let slots = vec![Value::NOTHING; definition.slots.len()];
        let shares = !definition.shared.is_empty();
        let variables = match definition.body {
            Body::Module(_) => Some(machine.module_object(file)),
            _ if shares => {
                Some(machine.heap.object(Shape::Variables(function, closure), Some(location), maker))
            }
            _ => None,
        };
        Self {
            function,
            file,
            closure,
            variables,
            maker,
            receiver,
            call: 0,
            slots,
            live: true,
            recording,
            loops: Vec::new(),
            counters: Vec::new(),
            guards: Guards::default(),
            once: None,
            statement: location,
            events: Vec::new(),
            event_loops: Vec::new(),
            given: Vec::new(),
            noted: None,
            result: Value::NOTHING,
            yielded: Value::NOTHING,
            breaks: Vec::new(),
            continues: Vec::new(),
        }
    }

    /// Gives the parameters their values, in the order of [`ruff_python_ast::Parameters`]' iterator.
    pub(crate) fn bind_parameters(&mut self, machine: &mut Machine<'_>, given: &[Value]) {
        let Some(parameters) = machine.scopes.function(self.function).parameters() else { return };
        let names: Vec<Symbol> = parameters
            .iter()
            .map(|parameter| machine.symbols.at(&parameter.name().node_index, parameter.name().as_str()))
            .collect();
        let variadic = parameters.kwarg.as_ref().map(|parameter| parameter.name.id.as_str());
        for (name, value) in names.into_iter().zip(given) {
            self.set(machine, name, *value);
            // `**kwargs` is made for every call.
            if variadic == Some(machine.symbols.name(name)) {
                value.objects.iter().for_each(|object| self.event(What::Birth(object), self.statement));
            }
        }
    }

    /// Binds a variable of this function.
    pub(crate) fn set(&mut self, machine: &mut Machine<'_>, name: Symbol, value: Value) {
        let definition = machine.scopes.function(self.function);
        let Some(&slot) = definition.slots.get(&name) else { return };
        let shared = matches!(definition.body, Body::Module(_)) || definition.shared.contains(&name);
        self.slots[slot as usize] = value;
        if let Some(variables) = self.variables.filter(|_| shared) {
            machine.heap.set_field(variables, name, value);
        }
    }

    /// Puts an event down.
    pub(crate) fn event(&mut self, what: What, at: Location) {
        if !self.live {
            return;
        }
        let noted = self.noted.filter(|(start, end)| {
            self.event_loops.get(*start as usize..*end as usize) == Some(self.loops.as_slice())
        });
        let loops = noted.unwrap_or_else(|| {
            let start = self.event_loops.len() as u32;
            self.event_loops.extend_from_slice(&self.loops);
            (start, self.event_loops.len() as u32)
        });
        self.noted = Some(loops);
        self.events.push(Event {
            what,
            at,
            statement: self.statement,
            loops,
            guards: self.guards,
            once: self.once,
            recording: self.recording,
        });
    }

    /// Takes back what a condition told of variables.
    pub(crate) fn widen(&mut self, narrowed: Vec<(u32, Value)>) {
        for (slot, value) in narrowed.into_iter().rev() {
            self.slots[slot as usize] = value;
        }
    }

    /// What the variables may be on either of two ways.
    pub(crate) fn join(&mut self, other: &[Value], live: bool) {
        if !live {
            return;
        }
        if !self.live {
            self.slots.clear();
            self.slots.extend_from_slice(other);
            self.live = true;
            return;
        }
        for (mine, theirs) in self.slots.iter_mut().zip(other) {
            *mine = mine.join(theirs);
        }
    }
}
