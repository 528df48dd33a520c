//! Blocks in their segments: a list in order of addresses for each segment.

/// What a block is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    /// In use.
    Live,
    /// Reserved, and in no use.
    #[default]
    Free,
    /// Addresses of an expandable segment without memory behind them.
    Unmapped,
    /// No block: its place in the list is to be used again.
    Gone,
}

/// A block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) size: u64,
    /// Of its size, while it is live: the rest is rounding.
    pub(super) requested: u64,
    pub(super) stream: u64,
    pub(super) large: bool,
    pub(super) state: State,
    /// Of an expandable segment?
    pub(super) expandable: bool,
    /// Requests to its pool when it became free.
    pub(super) since: u64,
    pub(super) previous: Option<u32>,
    pub(super) next: Option<u32>,
}

impl Block {
    /// The pool that it belongs to.
    pub(super) const fn pool(&self) -> (u64, bool) {
        (self.stream, self.large)
    }

    /// Is it all of a segment that can be given back?
    pub(super) const fn is_whole(&self) -> bool {
        self.previous.is_none() && self.next.is_none() && !self.expandable
    }
}

/// All blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    all: Vec<Block>,
    unused: Vec<u32>,
    /// First address that no segment has had.
    end: u64,
}

impl Blocks {
    pub(super) fn get(&self, index: u32) -> Block {
        self.all[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Block {
        &mut self.all[index as usize]
    }

    /// A block that is a segment, behind all others.
    pub(super) fn segment(&mut self, block: Block) -> u32 {
        let address = self.end;
        self.end += block.size;
        self.add(Block { address, ..block })
    }

    fn add(&mut self, block: Block) -> u32 {
        if let Some(index) = self.unused.pop() {
            *self.get_mut(index) = block;
            return index;
        }
        self.all.push(block);
        self.all.len() as u32 - 1
    }

    /// Cuts a block behind its first `size` bytes; the new block is the rest.
    pub(super) fn split(&mut self, index: u32, size: u64) -> u32 {
        let block = self.get(index);
        let rest = self.add(Block {
            address: block.address + size,
            size: block.size - size,
            previous: Some(index),
            ..block
        });
        if let Some(next) = block.next {
            self.get_mut(next).previous = Some(rest);
        }
        let front = self.get_mut(index);
        front.size = size;
        front.next = Some(rest);
        rest
    }

    /// Makes a block and the one behind it one.
    pub(super) fn merge(&mut self, index: u32, next: u32) {
        let behind = self.get(next);
        let front = self.get_mut(index);
        front.size += behind.size;
        front.next = behind.next;
        if let Some(after) = behind.next {
            self.get_mut(after).previous = Some(index);
        }
        self.remove(next);
    }

    pub(super) fn remove(&mut self, index: u32) {
        *self.get_mut(index) = Block { state: State::Gone, ..Block::default() };
        self.unused.push(index);
    }

    /// Bytes in blocks of a state.
    #[cfg(test)]
    pub(super) fn bytes(&self, state: State) -> u64 {
        self.all.iter().filter(|block| block.state == state).map(|block| block.size).sum()
    }
}
