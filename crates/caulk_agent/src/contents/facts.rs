//! What the elements of a container are, as far as that decides the class of a leak.

use std::collections::HashMap;

use caulk_wire::{Contents, Trait};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

use super::counts::by_count;
use super::sample::Sample;
use crate::frames::is_installed_file;
use crate::heap::{Address, Heap, Shape, is_a, loaded, member, type_name};
use crate::torch::Torch;

/// Columns of a row.
const COLUMNS: usize = 256;

/// Facts about the elements that decide a leak's class.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) traits: Vec<Trait>,
}

impl Facts {
    pub(super) fn add(&mut self, fact: Trait) {
        if !self.has(&fact) {
            self.traits.push(fact);
        }
    }

    pub(super) fn has(&self, fact: &Trait) -> bool {
        self.traits.contains(fact)
    }

    /// Elements that are tensors with a graph. Where one is made from another, the graph of the one refers to the other,
    /// from C++, so that it does not seem to be the container's alone.
    pub(super) fn graphs_of(&mut self, heap: &mut Heap<'_>, elements: &[Address]) {
        let Some(torch) = Torch::new(heap.py) else { return };
        for element in elements {
            if heap.type_of(*element).shape != Shape::Tensor {
                continue;
            }
            let tensor = heap.own(*element);
            if torch.is_plain(&tensor) && Torch::grad_fn(&tensor).is_some() {
                self.add(Trait::Tensor);
                self.add(Trait::Graph);
            }
        }
    }

    pub(super) fn element_types(
        &mut self,
        heap: &mut Heap<'_>,
        elements: &[Address],
        contents: &mut Contents,
    ) {
        let mut types: HashMap<String, u32> = HashMap::new();
        let (mut scalars, mut records, mut installed) = (0, 0, 0);
        for element in elements {
            *types.entry(heap.type_name(*element)).or_default() += 1;
            let object = heap.own(*element);
            scalars += usize::from(is_scalar(&object));
            records += usize::from(is_record(heap, *element));
            installed += usize::from(is_installed(&object));
            for fact in kinds(&object) {
                self.add(fact);
            }
        }
        if scalars == elements.len() {
            self.add(Trait::Scalar);
        }
        if records == elements.len() {
            self.add(Trait::Record);
        }
        if installed == elements.len() {
            self.add(Trait::Installed);
        }
        contents.element_types = by_count(types);
    }

    pub(super) fn keys(&mut self, heap: &mut Heap<'_>, sample: &Sample, epochs: u64) {
        let has_tensor = |heap: &mut Heap<'_>, key: Address| {
            let mut found = heap.type_of(key).shape == Shape::Tensor;
            let mut inner = Vec::new();
            heap.referents(key, &mut |item| inner.push(item));
            found |= inner.iter().any(|item| heap.type_of(*item).shape == Shape::Tensor);
            found
        };
        if sample.keys.iter().any(|key| has_tensor(heap, *key)) {
            self.add(Trait::TensorKey);
        }
        if let Some(first) = sample.first_key
            && counts_epochs(heap, first, &sample.last_keys, epochs)
        {
            self.add(Trait::EpochKey);
        }
        // functools makes a key of the arguments; a method's first argument is the instance.
        let has_instance = |heap: &mut Heap<'_>, key: &Address| {
            let Ok(tuple) = heap.own(*key).cast_into_exact::<PyTuple>() else { return false };
            let Ok(first) = tuple.get_item(0) else { return false };
            let info = heap.type_of(first.as_ptr() as Address);
            info.collected && info.shape == Shape::Plain
        };
        if !sample.keys.is_empty() && sample.keys.iter().all(|key| has_instance(heap, key)) {
            self.add(Trait::SelfKey);
        }
    }
}

/// Is one part of the keys the number of the epoch in which the entry was made?
///
/// The youngest keys agree in it, the oldest key has another, and the distance is the number of epochs between, give or
/// take one.
fn counts_epochs(heap: &Heap<'_>, first: Address, keys: &[Address], epochs: u64) -> bool {
    let parts = |key: Address| -> Vec<Option<i64>> {
        let key = heap.own(key);
        match key.cast_exact::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(|item| integer(&item)).collect(),
            Err(_) => Vec::new(),
        }
    };
    let first = parts(first);
    let youngest: Vec<_> = keys.iter().map(|key| parts(*key)).collect();
    (0..first.len()).any(|at| {
        let value = youngest.last().and_then(|key| key.get(at).copied().flatten());
        let agree = youngest.iter().all(|key| key.get(at).copied().flatten() == value);
        match (first[at], value) {
            (Some(old), Some(new)) if agree && youngest.len() >= 2 => {
                let distance = new.abs_diff(old);
                distance >= 1 && distance.abs_diff(epochs) <= 1
            }
            _ => false,
        }
    })
}

fn integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.cast_exact::<PyInt>().ok()?.extract().ok()
}

fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    let (name, module) = (type_name(&object.get_type()), module_name(object));
    matches!(name.as_str(), "int" | "float" | "str" | "bool" | "NoneType" | "bytes" | "complex")
        || (module == "numpy" && !matches!(name.as_str(), "ndarray"))
        || matches!(module.as_str(), "datetime" | "pathlib" | "decimal")
}

/// Name of the module of its type.
fn module_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().module().map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

/// Is its type an installed package's, neither the program's nor the standard library's?
fn is_installed(object: &Bound<'_, PyAny>) -> bool {
    let module = loaded(object.py(), &module_name(object));
    let file = module.and_then(|module| member(&module, "__file__"));
    file.and_then(|file| file.extract::<String>().ok()).is_some_and(|file| is_installed_file(&file))
}

/// A row: a dict with string keys, a tuple or a list, of scalars only (two columns or more).
fn is_record(heap: &mut Heap<'_>, element: Address) -> bool {
    let object = heap.own(element);
    if let Ok(dict) = object.cast::<PyDict>() {
        return (2..=COLUMNS).contains(&dict.len())
            && dict.iter().all(|(key, value)| is_scalar(&key) && is_scalar(&value));
    }
    if !matches!(heap.type_of(element).shape, Shape::Tuple | Shape::List) {
        return false;
    }
    if heap.length(element).is_none_or(|length| !(2..=COLUMNS).contains(&length)) {
        return false;
    }
    let mut items = Vec::new();
    heap.referents(element, &mut |item| items.push(item));
    items.len() >= 2 && items.iter().all(|item| is_scalar(&heap.own(*item)))
}

/// What an element is, as far as that names a class.
fn kinds(object: &Bound<'_, PyAny>) -> Vec<Trait> {
    const BY_CLASS: [(&str, &str, Trait); 8] = [
        ("torch.optim.optimizer", "Optimizer", Trait::Optimizer),
        ("torch.nn.modules.module", "Module", Trait::Module),
        ("matplotlib.figure", "Figure", Trait::Figure),
        ("matplotlib.backend_bases", "FigureManagerBase", Trait::Figure),
        ("logging", "LogRecord", Trait::LogRecord),
        ("functools", "partial", Trait::Function),
        ("types", "FunctionType", Trait::Function),
        ("types", "MethodType", Trait::Function),
    ];
    let is_a = |module: &str, class: &str| {
        loaded(object.py(), module)
            .and_then(|module| member(&module, class))
            .is_some_and(|class| is_a(object, &class))
    };
    BY_CLASS
        .iter()
        .filter(|(module, class, _)| is_a(module, class))
        .map(|(_, _, kind)| kind.clone())
        .collect()
}
