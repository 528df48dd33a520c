//! What objects of C code hold beside themselves: a figure's canvas, a parser's buffer. Python cannot tell, but the sampler
//! knows which blocks live: their addresses are looked for in the objects' own memory, and one step behind it.

use crate::heap::{Address, AddressMap, AddressSet, read_word, type_address};
use crate::heap_profile::Sampler;

/// Objects that are looked into, of each type some, which the rest of it is taken to be like: one canvas among hundreds of
/// transforms is as good as all that a figure weighs.
const MOST: usize = 512;
/// Words of an object, and of what it points to.
const WORDS: usize = 32;
const WORD: usize = size_of::<Address>();
/// Below it no memory is mapped, above it none of a program's.
const LOWEST: Address = 1 << 16;
const HIGHEST: Address = 1 << 47;

/// Bytes of sampled blocks to which these objects lead, each once. Each with its size; they are alive.
pub(super) fn bytes(sampler: Sampler, objects: &[(Address, usize)]) -> u64 {
    let mut types: AddressMap<Vec<(Address, usize)>> = AddressMap::default();
    for object in objects {
        types.entry(type_address(object.0)).or_default().push(*object);
    }
    // Rare types first.
    let mut types: Vec<_> = types.into_values().collect();
    types.sort_by_key(Vec::len);
    let (mut seen, mut left) = (AddressSet::default(), MOST);
    let mut sum = 0;
    for (at, objects) in types.iter().enumerate() {
        let step = objects.len().div_ceil((left / (types.len() - at)).max(1));
        left = left.saturating_sub(objects.len().div_ceil(step));
        let held = objects.iter().step_by(step).map(|object| behind_object(sampler, *object, &mut seen));
        sum += held.sum::<u64>() * step as u64;
    }
    sum
}

/// Bytes of sampled blocks, not `seen` before, to which one object of a size leads.
fn behind_object(sampler: Sampler, (object, size): (Address, usize), seen: &mut AddressSet) -> u64 {
    let mut sum = 0;
    let mut weigh = |address: Address| {
        let known = sampler.maker(address);
        if let Some((_, weight)) = known.filter(|_| seen.insert(address)) {
            sum += weight;
        }
        known.is_some()
    };
    // Behind the count of references and the type.
    for at in 2..(size / WORD).min(WORDS) {
        let address = read_word(object + at * WORD);
        if is_pointer(address) && !weigh(address) {
            behind(address).into_iter().filter(|word| is_pointer(*word)).for_each(|word| {
                weigh(word);
            });
        }
    }
    sum
}

fn is_pointer(word: Address) -> bool {
    word.is_multiple_of(WORD) && (LOWEST..HIGHEST).contains(&word)
}

/// What lies at an address that may be none: the system reads it, and knows what is not there.
fn behind(address: Address) -> [Address; WORDS] {
    let mut words = [0; WORDS];
    let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: WORDS * WORD };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: WORDS * WORD };
    // SAFETY: a number.
    let own = unsafe { libc::getpid() };
    // SAFETY: writes into `words`, whose length it is given.
    let read = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    if read == (WORDS * WORD) as isize { words } else { [0; WORDS] }
}
