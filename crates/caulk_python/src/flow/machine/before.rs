//! Which hooks are registered before a training begins: the project calls first what registers them, then a backward pass.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::event::{Root, What};
use crate::flow::ids::{ActivationId, FunctionId, ObjectId};
use crate::flow::lifetime::BACKWARD;
use crate::flow::machine::Machine;
use crate::flow::symbols::Symbol;

/// Functions that register hooks of modules, and are called before a backward pass.
pub(super) struct Before {
    registering: FxHashSet<FunctionId>,
}

impl Before {
    pub(super) fn new(machine: &Machine<'_>) -> Self {
        let mut registering: FxHashSet<FunctionId> =
            machine.hooks.values().filter(|hooked| hooked.dropped).map(|hooked| hooked.by).collect();
        if !registering.is_empty() {
            let calls = Calls::new(machine);
            let trains = calls.reaching(|what| calls.is_backward(what));
            registering.retain(|function| {
                let of_function = |id: ActivationId| machine.activations[id.0 as usize].function == *function;
                let own: FxHashSet<ActivationId> = calls.all().filter(|id| of_function(*id)).collect();
                calls.is_before(&own, &trains)
            });
        }
        Self { registering }
    }

    /// Whether a hook is registered before a training.
    pub(super) fn is_registered(&self, machine: &Machine<'_>, hook: ObjectId) -> bool {
        machine.hooks.get(&hook).is_some_and(|hooked| self.registering.contains(&hooked.by))
    }
}

/// Calls of the project, by their callers.
struct Calls<'m, 'p> {
    machine: &'m Machine<'p>,
    backward: Vec<Symbol>,
    registers: Vec<Symbol>,
    callers: FxHashMap<ActivationId, Vec<ActivationId>>,
}

impl<'m, 'p> Calls<'m, 'p> {
    fn new(machine: &'m Machine<'p>) -> Self {
        let find = |names: &[&str]| names.iter().filter_map(|name| machine.symbols.find(name)).collect();
        let mut callers: FxHashMap<ActivationId, Vec<ActivationId>> = FxHashMap::default();
        for (at, activation) in machine.activations.iter().enumerate() {
            for event in &activation.events {
                if let What::Call(called) = event.what {
                    callers.entry(called).or_default().push(ActivationId(at as u32));
                }
            }
        }
        Self {
            machine,
            backward: find(&BACKWARD),
            registers: find(&[
                "torch.nn.Module.register_forward_hook",
                "torch.nn.Module.register_forward_pre_hook",
            ]),
            callers,
        }
    }

    fn all(&self) -> impl Iterator<Item = ActivationId> + use<> {
        (0..self.machine.activations.len() as u32).map(ActivationId)
    }

    fn is_backward(&self, what: &What) -> bool {
        matches!(what, What::Library { name, .. } if self.backward.contains(name))
    }

    fn registers(&self, what: &What) -> bool {
        matches!(what, What::Library { name, .. } if self.registers.contains(name))
    }

    /// Activations in which something happens, themselves or in what they call.
    fn reaching(&self, happens: impl Fn(&What) -> bool) -> FxHashSet<ActivationId> {
        let here = |id: &ActivationId| {
            self.machine.activations[id.0 as usize].events.iter().any(|event| happens(&event.what))
        };
        self.with_callers(self.all().filter(here))
    }

    fn with_callers(&self, some: impl Iterator<Item = ActivationId>) -> FxHashSet<ActivationId> {
        let mut found: FxHashSet<ActivationId> = some.collect();
        let mut open: Vec<ActivationId> = found.iter().copied().collect();
        while let Some(id) = open.pop() {
            let callers = self.callers.get(&id).into_iter().flatten();
            open.extend(callers.filter(|caller| found.insert(**caller)));
        }
        found
    }

    /// Whether some function of the project calls one of these, or registers a hook as one of them, before a backward pass.
    fn is_before(&self, registering: &FxHashSet<ActivationId>, trains: &FxHashSet<ActivationId>) -> bool {
        let reaching = self.with_callers(registering.iter().copied());
        reaching.iter().any(|id| {
            let activation = &self.machine.activations[id.0 as usize];
            let own = registering.contains(id);
            let called = |what: &What, among: &FxHashSet<ActivationId>| {
                matches!(what, What::Call(called) if among.contains(called))
            };
            let first = activation.events.iter().position(|event| {
                called(&event.what, &reaching) || own && self.registers(&event.what)
            });
            let after = first.map_or(&[][..], |first| &activation.events[first + 1..]);
            activation.root != Some(Root::Test)
                && after.iter().any(|event| called(&event.what, trains) || self.is_backward(&event.what))
        })
    }
}
