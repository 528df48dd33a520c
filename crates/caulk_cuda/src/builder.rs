//! Turns what a pickle contains into parts of a snapshot, each as soon as it is complete.
//!
//! The keys of a dict decide its kind. Texts, frames and stacks are kept once, however often they occur: a history has millions of
//! events and some thousand stacks. Keys: `torch/csrc/cuda/memory_snapshot.cpp` and `Module.cpp` (`_cuda_memorySnapshot`).

use rustc_hash::FxHashMap;

use crate::parts::{Event, HeldBlock, HeldState, Segment, TraceAction};
use crate::pickle::Build;

/// Something that a pickle contains.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item {
    None,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(u32),
    SnapshotFrame(u32),
    Stack(u32),
    Block(u32),
    Segment,
    Event(u32),
    List(u32),
    Dict(u32),
}

/// Entries of a dict.
pub(crate) type Entries = Vec<(Item, Item)>;

/// All parts so far.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) texts: Interned<Box<str>>,
    /// File, line and function of each frame.
    pub(crate) frames: Interned<(u32, u32, u32)>,
    /// Frames of each stack, innermost first.
    pub(crate) stacks: Interned<Box<[u32]>>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) events: Vec<Event>,
    pub(crate) lists: Vec<Vec<Item>>,
    pub(crate) dicts: Vec<Entries>,
    blocks: Vec<HeldBlock>,
}

/// Values with a number each, the same for equal ones.
#[derive(Debug)]
pub(crate) struct Interned<T> {
    numbers: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn add<Q>(&mut self, value: &Q) -> u32
    where
        T: std::borrow::Borrow<Q> + From<Q::Owned>,
        Q: ?Sized + Eq + std::hash::Hash + ToOwned,
    {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let (number, own) = (self.values.len() as u32, T::from(value.to_owned()));
        self.values.push(own.clone());
        self.numbers.insert(own, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}

impl Builder {
    /// A text, if it is one.
    pub(crate) fn as_text(&self, item: Item) -> Option<&str> {
        if let Item::Text(number) = item { self.texts.get(number).map(AsRef::as_ref) } else { None }
    }

    /// The value of a key.
    pub(crate) fn value(&self, entries: &[(Item, Item)], key: &str) -> Option<Item> {
        entries.iter().find(|(own, _)| self.as_text(*own) == Some(key)).map(|(_, value)| *value)
    }

    /// A number that is not negative.
    pub(crate) fn number(&self, entries: &[(Item, Item)], key: &str) -> Option<u64> {
        match self.value(entries, key)? {
            Item::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    pub(crate) fn list_of(&self, item: Item) -> &[Item] {
        if let Item::List(number) = item { &self.lists[number as usize] } else { &[] }
    }

    fn text_of(&self, entries: &[(Item, Item)], key: &str) -> Option<&str> {
        self.as_text(self.value(entries, key)?)
    }

    fn stack(&mut self, entries: &[(Item, Item)]) -> u32 {
        match self.value(entries, "frames") {
            Some(Item::Stack(stack)) => stack,
            _ => self.stacks.add::<[u32]>(&[]),
        }
    }

    fn frame(&mut self, entries: &[(Item, Item)]) -> Item {
        let text = |key| match self.value(entries, key) {
            Some(Item::Text(number)) => Some(number),
            _ => None,
        };
        let (file, function) = (text("filename"), text("name"));
        let line = self.number(entries, "line").and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let unknown = self.texts.add("??");
        Item::SnapshotFrame(self.frames.add(&(file.unwrap_or(unknown), line, function.unwrap_or(unknown))))
    }

    fn block(&mut self, entries: &[(Item, Item)]) -> Item {
        let state = match self.text_of(entries, "state") {
            Some("active_allocated") => HeldState::Live,
            Some("inactive") => HeldState::Free,
            _ => HeldState::Pending,
        };
        let number = |key| self.number(entries, key).unwrap_or(0);
        let (address, size) = (number("address"), number("size"));
        let stack = self.stack(entries);
        self.blocks.push(HeldBlock { address, size, state, stack });
        Item::Block(self.blocks.len() as u32 - 1)
    }

    fn segment(&mut self, entries: &[(Item, Item)]) -> Item {
        let number = |key| self.number(entries, key).unwrap_or(0);
        let items = self.value(entries, "blocks").map_or(&[][..], |blocks| self.list_of(blocks));
        let mut address = number("address");
        let mut blocks = Vec::with_capacity(items.len());
        for item in items {
            if let Item::Block(number) = *item {
                let block = self.blocks[number as usize];
                // Before torch 2.1 blocks had no addresses.
                blocks.push(HeldBlock { address, ..block });
                address += block.size;
            }
        }
        let pool = self.value(entries, "segment_pool_id").map_or(&[][..], |pool| self.list_of(pool));
        let segment = Segment {
            device: number("device") as u32,
            size: number("total_size"),
            stream: number("stream"),
            large: self.text_of(entries, "segment_type") == Some("large"),
            private: pool.iter().any(|part| !matches!(part, Item::Integer(0))),
            blocks,
        };
        self.segments.push(segment);
        Item::Segment
    }

    fn event(&mut self, entries: &[(Item, Item)]) -> Item {
        let action = match self.text_of(entries, "action") {
            Some("alloc") => TraceAction::Allocate,
            Some("free_requested") => TraceAction::Free,
            Some("oom") => TraceAction::OutOfMemory,
            _ => TraceAction::Other,
        };
        let number = |key| self.number(entries, key);
        let address = number("addr").or_else(|| number("device_free")).unwrap_or(0);
        let (size, stream) = (number("size").unwrap_or(0), number("stream").unwrap_or(0));
        self.events.push(Event { address, size, stream, action });
        Item::Event(self.events.len() as u32 - 1)
    }
}

impl Build for Builder {
    type Item = Item;

    fn none(&mut self) -> Item {
        Item::None
    }

    fn boolean(&mut self, value: bool) -> Item {
        Item::Boolean(value)
    }

    fn integer(&mut self, value: i64) -> Item {
        Item::Integer(value)
    }

    fn float(&mut self, value: f64) -> Item {
        Item::Float(value)
    }

    fn text(&mut self, value: &str) -> Item {
        Item::Text(self.texts.add(value))
    }

    fn list(&mut self, items: Vec<Item>) -> Item {
        let frames: Option<Vec<u32>> = items
            .iter()
            .map(|item| if let Item::SnapshotFrame(frame) = item { Some(*frame) } else { None })
            .collect();
        match frames.filter(|frames| !frames.is_empty()) {
            Some(frames) => Item::Stack(self.stacks.add(frames.as_slice())),
            None if items.is_empty() => Item::None,
            None => {
                self.lists.push(items);
                Item::List(self.lists.len() as u32 - 1)
            }
        }
    }

    fn dict(&mut self, entries: Entries) -> Item {
        let has = |key| self.value(&entries, key).is_some();
        if has("action") {
            self.event(&entries)
        } else if has("filename") {
            self.frame(&entries)
        } else if has("state") && has("size") {
            self.block(&entries)
        } else if has("total_size") {
            self.segment(&entries)
        } else {
            self.dicts.push(entries);
            Item::Dict(self.dicts.len() as u32 - 1)
        }
    }
}
