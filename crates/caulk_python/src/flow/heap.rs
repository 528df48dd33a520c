//! Abstract objects: one for every place in source that makes one, told apart by who made it there (the receiver of
//! the method, or the caller). What an object holds is joined over the whole run.

mod fields;

use rustc_hash::FxHashMap;

pub(crate) use crate::flow::heap::fields::Fields;
use crate::flow::ids::{ClassId, FunctionId, ObjectId, PlaceId};
use crate::flow::symbols::Symbol;
use crate::flow::value::Value;
use crate::project::{FileId, Location};

/// Who made an object: distinguishes what one line makes for several owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Maker {
    /// Nobody in particular.
    #[default]
    Anyone,
    /// A method of this object.
    Receiver(ObjectId),
    /// A function that is called here.
    Caller(Location),
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `list`.
    List,
    /// `tuple`.
    Tuple,
    /// `dict` and its kin.
    Dict,
    /// `set`.
    Set,
    /// `collections.deque`.
    Deque,
    /// `queue.Queue` and its kin.
    Queue,
    /// A generator or other iterator over elements.
    Iterator,
    /// An object of a class of the project.
    Instance(ClassId),
    /// A class of the project.
    Class(ClassId),
    /// A function of the project, with the variables around it.
    Function(FunctionId, Option<ObjectId>),
    /// A function with its first argument.
    Method(ObjectId, ObjectId),
    /// A method of a built-in container, by its name: `rows.append`; or some method of another
    /// object of whose name only the beginning is known.
    BuiltIn(ObjectId, Symbol),
    /// `functools.partial(function, ...)`.
    Partial(ObjectId),
    /// Variables of an activation that inner functions share.
    Variables(FunctionId, Option<ObjectId>),
    /// A module of the project.
    Module(FileId),
    /// Something of a library, by its dotted name.
    External(Symbol),
    /// An object that a library's class or function gives, by that one's dotted name.
    Foreign(Symbol),
    /// `super()` of a class in a method of an object.
    Super(ClassId, ObjectId),
    /// Whatever a place holds that is made longer by binding it anew.
    Held(PlaceId),
}

impl Shape {
    /// A built-in container that can grow.
    pub const fn is_container(self) -> bool {
        matches!(self, Self::List | Self::Dict | Self::Set | Self::Deque | Self::Queue)
    }
}

/// What is known of one abstract object.
#[derive(Debug, Clone)]
pub struct Object {
    /// What it is.
    pub shape: Shape,
    /// Where it is made, if one place makes it.
    pub at: Option<Location>,
    /// Who makes it there.
    pub maker: Maker,
    /// It has a largest size.
    pub bounded: bool,
    /// It is asked for keys that may be missing, as caches are.
    pub looked_up: bool,
    /// It makes what is missing, as a `defaultdict` does.
    pub fills: bool,
    /// What is in it.
    pub elements: Value,
    /// Its keys.
    pub keys: Value,
    /// Attributes; entries under constant keys; positions of a tuple.
    pub fields: Fields,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    shape: Shape,
    at: Option<Location>,
    maker: Maker,
    recording: bool,
    call: u64,
}

/// Objects by number, in blocks: one vector would hold them twice whenever it grows.
#[derive(Debug, Default)]
struct Objects {
    blocks: Vec<Vec<Object>>,
}

impl Objects {
    const BLOCK: usize = 1024;

    fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * Self::BLOCK + last.len())
    }

    fn get(&self, id: ObjectId) -> &Object {
        &self.blocks[id.0 as usize / Self::BLOCK][id.0 as usize % Self::BLOCK]
    }

    fn get_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.blocks[id.0 as usize / Self::BLOCK][id.0 as usize % Self::BLOCK]
    }

    fn push(&mut self, object: Object) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < Self::BLOCK => last.push(object),
            // A small project has few.
            None => self.blocks.push(vec![object]),
            Some(_) => {
                let mut block = Vec::with_capacity(Self::BLOCK);
                block.push(object);
                self.blocks.push(block);
            }
        }
    }
}

/// All abstract objects.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    objects: Objects,
    known: FxHashMap<Key, ObjectId>,
    /// Something was learnt since this was last cleared.
    pub changed: bool,
}

impl Heap {
    /// The object that is made at a place for somebody.
    pub(crate) fn object(&mut self, shape: Shape, at: Option<Location>, maker: Maker) -> ObjectId {
        self.container(shape, at, maker, true)
    }

    /// As [`Self::object`], apart from what is made at the same place while autograd records, or does not: what a model
    /// returns in a dict has a graph in training and none under `no_grad`.
    pub(crate) fn container(
        &mut self,
        shape: Shape,
        at: Option<Location>,
        maker: Maker,
        recording: bool,
    ) -> ObjectId {
        self.part(shape, at, maker, recording, 0)
    }

    /// As [`Self::container`], apart from what other calls of the function make at the same place: two calls of a model
    /// that gives its output and its state in a tuple give different states.
    pub(crate) fn part(
        &mut self,
        shape: Shape,
        at: Option<Location>,
        maker: Maker,
        recording: bool,
        call: u64,
    ) -> ObjectId {
        if self.objects.len() == 0 {
            // Identity zero is nobody's.
            self.push(Shape::Tuple, None, Maker::Anyone);
        }
        let key = Key { shape, at, maker, recording, call };
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let id = self.push(shape, at, maker);
        self.known.insert(key, id);
        id
    }

    fn push(&mut self, shape: Shape, at: Option<Location>, maker: Maker) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        self.objects.push(Object {
            shape,
            at,
            maker,
            bounded: false,
            looked_up: false,
            fills: false,
            elements: Value::NOTHING,
            keys: Value::NOTHING,
            fields: Fields::default(),
        });
        id
    }

    /// Something that is the same everywhere: a class, a module, a library's function.
    pub(crate) fn unique(&mut self, shape: Shape) -> ObjectId {
        self.object(shape, None, Maker::Anyone)
    }

    /// Something that is the same everywhere, where it was met.
    pub(crate) fn find(&self, shape: Shape) -> Option<ObjectId> {
        self.known.get(&Key { shape, at: None, maker: Maker::Anyone, recording: true, call: 0 }).copied()
    }

    /// One object.
    pub(crate) fn get(&self, id: ObjectId) -> &Object {
        self.objects.get(id)
    }

    /// Nothing is added any more: how to find what is made again is not needed.
    pub(crate) fn complete(mut self) -> Self {
        self.known = FxHashMap::default();
        self
    }

    /// Its shape.
    pub(crate) fn shape(&self, id: ObjectId) -> Shape {
        self.get(id).shape
    }

    /// All of them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.objects.len() as u32).map(ObjectId)
    }

    /// A field, as far as it is known.
    pub(crate) fn field(&self, id: ObjectId, name: Symbol) -> Option<Value> {
        self.get(id).fields.get(name).copied()
    }

    /// Adds to what a field may hold.
    pub(crate) fn set_field(&mut self, id: ObjectId, name: Symbol, value: Value) {
        let field = self.objects.get_mut(id).fields.slot(name);
        let joined = field.join(&value);
        if joined != *field {
            // Another story of the same value teaches nothing.
            self.changed |= joined.untold() != field.untold();
            *field = joined;
        }
    }

    /// Adds to what it may hold.
    pub(crate) fn add_element(&mut self, id: ObjectId, value: Value) {
        let object = self.objects.get_mut(id);
        let joined = object.elements.join(&value);
        self.changed |= joined.untold() != object.elements.untold();
        object.elements = joined;
    }

    /// Adds to what its keys may be.
    pub(crate) fn add_key(&mut self, id: ObjectId, value: Value) {
        let object = self.objects.get_mut(id);
        let joined = object.keys.join(&value);
        self.changed |= joined.untold() != object.keys.untold();
        object.keys = joined;
    }

    /// It makes what is missing.
    pub(crate) fn set_fills(&mut self, id: ObjectId) {
        self.objects.get_mut(id).fills = true;
    }

    /// It is asked for keys that may be missing.
    pub(crate) fn set_looked_up(&mut self, id: ObjectId) {
        self.objects.get_mut(id).looked_up = true;
    }

    /// It has a largest size.
    pub(crate) fn set_bounded(&mut self, id: ObjectId) {
        self.objects.get_mut(id).bounded = true;
    }
}
