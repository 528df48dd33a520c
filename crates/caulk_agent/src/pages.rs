//! What the kernel tells of this process's pages, without a privilege (`/proc/self/pagemap`: admin-guide/mm/pagemap.rst).
//!
//! `mincore` would do for one part of it only: it takes a page that was swapped out for one that was never touched.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::heap::Address;

/// Bytes that the kernel tells of a page, and pages asked for at once.
const ENTRY: usize = 8;
const AT_ONCE: usize = 2048;
/// Bits of an entry: mapped by this process alone; a page of a file, or shared; swapped out, or a page of memory.
const EXCLUSIVE: u64 = 1 << 56;
const OF_FILE: u64 = 1 << 61;
const TOUCHED: u64 = 0b11 << 62;

/// The table of pages.
pub(crate) struct Pages {
    table: File,
    /// Bytes of a page.
    page: usize,
}

impl Pages {
    /// # Errors
    /// Where the system has no such table, or keeps it to itself.
    pub(crate) fn open() -> io::Result<Self> {
        let table = File::open("/proc/self/pagemap")?;
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).ok().filter(|page| *page > 0).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self { table, page })
    }

    /// Is the page at this address mapped by this process alone?
    pub(crate) fn is_private(&self, address: Address) -> bool {
        let mut entry = [0; ENTRY];
        let read = self.table.read_exact_at(&mut entry, (address / self.page * ENTRY) as u64);
        read.is_ok() && u64::from_ne_bytes(entry) & EXCLUSIVE != 0
    }

    /// Bytes of a block that lie in pages which were ever touched, swapped out or not. Its ends share pages with what
    /// lies beside it: their pages tell nothing, and count as touched.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub(crate) fn touched(&self, start: Address, bytes: usize) -> io::Result<usize> {
        let whole = start.div_ceil(self.page)..start.saturating_add(bytes) / self.page;
        let untouched = whole.clone().step_by(AT_ONCE);
        let untouched = untouched.map(|first| self.untouched(first..whole.end.min(first + AT_ONCE)));
        Ok(bytes - untouched.sum::<io::Result<usize>>()? * self.page)
    }

    /// Bytes of a mapped file that are copies by now, swapped out or not.
    ///
    /// # Errors
    /// If the page table cannot be read.
    pub(crate) fn copied(&self, addresses: Range<Address>) -> io::Result<u64> {
        let pages = addresses.start / self.page..addresses.end / self.page;
        let is_copy = |entry: u64| entry & TOUCHED != 0 && entry & OF_FILE == 0;
        let counts = pages
            .clone()
            .step_by(AT_ONCE)
            .map(|first| self.count(first..pages.end.min(first + AT_ONCE), is_copy));
        Ok((counts.sum::<io::Result<usize>>()? * self.page) as u64)
    }

    /// How many of at most [`AT_ONCE`] pages were not touched.
    fn untouched(&self, pages: Range<usize>) -> io::Result<usize> {
        self.count(pages, |entry| entry & TOUCHED == 0)
    }

    /// How many of at most [`AT_ONCE`] pages are such.
    fn count(&self, pages: Range<usize>, are: impl Fn(u64) -> bool) -> io::Result<usize> {
        let mut entries = [0; AT_ONCE * ENTRY];
        let entries = &mut entries[..pages.len() * ENTRY];
        self.table.read_exact_at(entries, (pages.start * ENTRY) as u64)?;
        let (entries, _) = entries.as_chunks::<ENTRY>();
        Ok(entries.iter().filter(|entry| are(u64::from_ne_bytes(**entry))).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        Pages::open().expect("every process may read its own")
    }

    #[test]
    fn memory_of_this_process_alone_is_private() {
        let own = std::hint::black_box(vec![1_u8; 1 << 20]);
        assert!(pages().is_private(own.as_ptr() as Address + (1 << 19)));
        assert!(!pages().is_private(0));
    }

    #[test]
    fn what_was_reserved_and_never_touched_is_told_apart() {
        const RESERVED: usize = 64 << 20;
        const TOUCHED: usize = 16 << 20;
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a mapping of its own.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), RESERVED, access, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let touched = || pages().touched(start as Address, RESERVED).expect("the kernel tells");
        let before = touched();
        // SAFETY: within it.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 1, TOUCHED) };
        let after = touched();
        // SAFETY: as it was mapped.
        unsafe { libc::munmap(start, RESERVED) };
        // Pages may be huge ones, of 2 MiB.
        assert!(before == 0 && (TOUCHED..=TOUCHED + (4 << 20)).contains(&after), "{before} {after}");
    }

    #[test]
    fn the_ends_of_a_block_count_as_touched() {
        let block = std::hint::black_box([0_u8; 100]);
        assert_eq!(
            pages().touched(block.as_ptr() as Address, block.len()).expect("there is nothing to ask"),
            100
        );
    }
}
