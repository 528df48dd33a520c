//! What garbage weighs: its objects, what they alone keep, and the storages of its tensors and arrays.

use caulk_wire::TypeCount;

use super::hidden;
use crate::contents::array_bytes;
use crate::heap::{Address, AddressMap, Heap, Shape, type_address};
use crate::heap_profile::Sampler;
use crate::torch::Torch;

/// Tensors and arrays that are asked for their storages; the rest is taken to be like these.
const ASKED: usize = 512;
/// Types that are told.
const TYPES: usize = 8;

/// Figures that need no call, and what is to be asked.
#[derive(Default)]
pub(super) struct Weight {
    /// Bytes of the objects themselves.
    pub(super) objects: u64,
    types: AddressMap<(u64, u64)>,
    /// Tensors and arrays.
    holders: Vec<Address>,
    /// Objects of C code, with their sizes.
    opaque: Vec<(Address, usize)>,
    /// Bytes that these hold beside themselves, as far as the sampler knows.
    pub(super) hidden: u64,
}

impl Weight {
    /// Weighs garbage whose addresses are good still; what is asked later is kept alive.
    pub(super) fn of(heap: &mut Heap<'_>, dead: &[Address], sampler: Option<Sampler>) -> Self {
        let mut weight = Self::default();
        let mut beside: AddressMap<usize> = AddressMap::default();
        for object in dead {
            weight.add(heap, *object);
            heap.counted_referents(*object, &mut |referent| *beside.entry(referent).or_default() += 1);
        }
        // Strings, numbers, bytes and arrays that the collector does not know, and that nobody else refers to.
        for (object, count) in beside {
            if !heap.type_of(object).collected && heap.references(object) <= count {
                weight.add(heap, object);
            }
        }
        weight.hidden = sampler.map_or(0, |sampler| hidden::bytes(sampler, &weight.opaque));
        let types: Vec<Address> = weight.types.keys().copied().collect();
        heap.keep(types.into_iter().chain(weight.holders.iter().copied()));
        weight
    }

    fn add(&mut self, heap: &mut Heap<'_>, object: Address) {
        let bytes = heap.shallow_bytes(object).next_multiple_of(16) as u64;
        self.objects += bytes;
        let (count, sum) = self.types.entry(type_address(object)).or_default();
        (*count, *sum) = (*count + 1, *sum + bytes);
        let info = heap.type_of(object);
        match info.shape {
            Shape::Tensor | Shape::Array => self.holders.push(object),
            // Instances of Python's own classes are known to the collector.
            Shape::Plain if !info.collected && info.item_size == 0 => {
                self.opaque.push((object, info.basic_size));
            }
            _ => {}
        }
    }

    /// Bytes of storages, each once; an estimate where there are many.
    pub(super) fn storages(&self, heap: &Heap<'_>) -> u64 {
        let torch = Torch::new(heap.py);
        let step = self.holders.len().div_ceil(ASKED).max(1);
        let mut storages: AddressMap<u64> = AddressMap::default();
        for holder in self.holders.iter().step_by(step) {
            let object = heap.own(*holder);
            if type_address(*holder) == heap.ndarray() {
                let (memory, bytes, _) = array_bytes(&object, torch.as_ref());
                storages.insert(memory, bytes);
            } else if torch.as_ref().is_some_and(|torch| torch.is_plain(&object)) {
                for held in Torch::grad(&object).iter().chain([&object]) {
                    storages
                        .extend(Torch::storage(held).map(|found| (found.pointer as Address, found.bytes)));
                }
            }
        }
        storages.values().sum::<u64>() * step as u64
    }

    /// The types with most bytes of their own.
    pub(super) fn types(&self, heap: &Heap<'_>) -> Vec<TypeCount> {
        let mut types: Vec<_> = self.types.iter().collect();
        types.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        let named = |(address, (count, bytes)): &(&Address, &(u64, u64))| TypeCount {
            name: heap.name_of_type(**address),
            count: *count,
            bytes: *bytes,
        };
        types.iter().take(TYPES).map(named).collect()
    }
}
