//! What makes cycles of garbage: attributes that lead back to where they come from, functions and frames within.

use std::cmp::Reverse;
use std::collections::HashMap;

use caulk_wire::{CodePlace, CycleLink};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::frames;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, loaded, member, type_address};
use crate::{label, symbols};

/// Objects whose attributes are looked at, functions and frames that are asked for their place.
const SAMPLED: usize = 24;
/// Objects gone through on the way back.
const FARTHEST: usize = 500;
/// Attributes and places that are told.
const TOLD: usize = 8;

/// Attributes of a sample of objects that lead back to their owner within the garbage: those of the program's classes first,
/// which libraries may have many more objects beside.
pub(super) fn of(heap: &mut Heap<'_>, dead: &[Address], among: &AddressSet) -> Vec<CycleLink> {
    let mut links: HashMap<(String, String, String), u32> = HashMap::new();
    let mut files: HashMap<String, String> = HashMap::new();
    let (own, others) = instances(heap, dead);
    for owner in spread(&own).chain(spread(&others)) {
        for (attribute, value) in label::attributes(heap, owner) {
            if among.contains(&value) && value != owner && leads_to(heap, value, owner, among) {
                let key = (heap.type_name(owner), attribute, heap.type_name(value));
                files.entry(key.0.clone()).or_insert_with(|| file_of(heap, type_address(owner)));
                *links.entry(key).or_default() += 1;
            }
        }
    }
    let mut links: Vec<CycleLink> = links
        .into_iter()
        .map(|((owner_type, attribute, target_type), count)| CycleLink {
            file: files.get(&owner_type).cloned().unwrap_or_default(),
            owner_type,
            attribute,
            target_type,
            count,
        })
        .collect();
    let order =
        |link: &CycleLink| (!frames::is_user_file(&link.file), Reverse(link.count), link.attribute.clone());
    links.sort_by_key(order);
    links.truncate(TOLD);
    links
}

/// Instances among the garbage: of the program's own classes, and of others.
fn instances(heap: &mut Heap<'_>, dead: &[Address]) -> (Vec<Address>, Vec<Address>) {
    let mut known: AddressMap<bool> = AddressMap::default();
    let instances: Vec<Address> = dead.iter().copied().filter(|object| is_instance(heap, *object)).collect();
    instances.into_iter().partition(|object| {
        let object_type = type_address(*object);
        *known.entry(object_type).or_insert_with(|| frames::is_user_file(&file_of(heap, object_type)))
    })
}

/// The user's functions and frames in the garbage, most frequent first.
pub(super) fn places(heap: &mut Heap<'_>, dead: &[Address]) -> Vec<CodePlace> {
    let is_code = |heap: &mut Heap<'_>, object: Address| {
        matches!(heap.type_of(object).shape, Shape::Function | Shape::Frame)
    };
    let with_code: Vec<Address> = dead.iter().copied().filter(|object| is_code(heap, *object)).collect();
    let mut places: Vec<(CodePlace, u32)> = Vec::new();
    for object in spread(&with_code) {
        let Some(place) = place_of(heap, object) else { continue };
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, count)) => *count += 1,
            None => places.push((place, 1)),
        }
    }
    places.sort_by_key(|(_, count)| Reverse(*count));
    places.into_iter().take(TOLD).map(|(place, _)| place).collect()
}

/// An object that may have attributes of the user's making.
fn is_instance(heap: &mut Heap<'_>, object: Address) -> bool {
    let info = heap.type_of(object);
    info.instance && matches!(info.shape, Shape::Plain | Shape::Exception)
}

/// As many as are looked at, from all over, at no fixed distance: what is made again and again has a period.
fn spread(objects: &[Address]) -> impl Iterator<Item = Address> {
    let step = objects.len().div_ceil(SAMPLED).max(1);
    let places = (0..SAMPLED).map(move |at| at * step + at.wrapping_mul(0x9E37_79B9) % step);
    places.filter_map(|place| objects.get(place).copied())
}

/// Is there a way within the garbage?
fn leads_to(heap: &mut Heap<'_>, from: Address, to: Address, among: &AddressSet) -> bool {
    let (mut visited, mut queue, mut next) = (AddressSet::from_iter([from]), vec![from], 0);
    while let Some(object) = queue.get(next).copied().filter(|_| next < FARTHEST) {
        next += 1;
        if object == to {
            return true;
        }
        heap.referents(object, &mut |referent| {
            if among.contains(&referent) && visited.insert(referent) {
                queue.push(referent);
            }
        });
    }
    false
}

fn place_of(heap: &mut Heap<'_>, object: Address) -> Option<CodePlace> {
    let owned = heap.own(object);
    let place = if heap.type_of(object).shape == Shape::Frame {
        frames::place(&owned)
    } else {
        let code = owned.getattr("__code__").ok()?;
        let line = code.getattr("co_firstlineno").ok()?.extract().ok()?;
        frames::Place { file: frames::file_of(&code), line, function: frames::function_of(&code) }
    };
    let frames::Place { file, line, function } = place;
    frames::is_user_file(&file).then_some(CodePlace { file, line, function })
}

/// File of the module that a type's name begins with. Torch makes the type of a backward pass for a class of the user's:
/// then that of this class.
fn file_of(heap: &Heap<'_>, object_type: Address) -> String {
    let py = heap.py;
    let forward = symbols::type_lookup().and_then(|lookup| {
        let name = PyString::intern(py, "_forward_cls");
        // SAFETY: a live type and a string; a borrowed reference or null, without an exception.
        let found = unsafe { lookup(object_type as *mut ffi::PyTypeObject, name.as_ptr()) };
        // SAFETY: as above; kept from here on.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, found) }
    });
    let forward = forward.and_then(|found| found.cast_into::<PyType>().ok());
    let object_type = forward.as_ref().map_or(object_type, |found| found.as_ptr() as Address);
    let type_name = heap.name_of_type(object_type);
    let mut name = type_name.as_str();
    while let Some((module, _)) = name.rsplit_once('.') {
        if let Some(module) = loaded(py, module) {
            return member(&module, "__file__").and_then(|file| file.extract().ok()).unwrap_or_default();
        }
        name = module;
    }
    String::new()
}
