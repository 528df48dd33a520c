//! Pages of privately mapped files that the process has written to (`mode="c"`, `ACCESS_COPY`, `MAP_PRIVATE`): each is then a
//! private copy, which no allocator counts and the kernel cannot drop.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ops::Range;

use crate::heap::Address;
use crate::pages::Pages;

/// Most bytes of such mappings whose pages are asked for.
const MOST: usize = 16 << 30;

/// A line of `/proc/self/maps` about a file (filesystems/proc.rst).
struct Mapping<'a> {
    addresses: Range<Address>,
    permissions: &'a str,
    file: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| Address::from_str_radix(text, 16).ok();
        let (addresses, permissions) = (address(start)?..address(end)?, words.next()?);
        let file = words.nth(3)?.trim_start();
        file.starts_with('/').then_some(Self { addresses, permissions, file })
    }

    /// May the process write to it without changing the file?
    fn is_copied_if_written(&self) -> bool {
        self.permissions.contains('w') && self.permissions.ends_with('p')
    }
}

/// Bytes of such copies, resident or swapped out; those of programs and libraries left out.
///
/// # Errors
/// Where the kernel does not show mappings or pages, or so much is mapped that it would take long.
pub(crate) fn bytes() -> io::Result<u64> {
    let maps = fs::read("/proc/self/maps")?;
    let maps = String::from_utf8_lossy(&maps);
    let ranges = written(&maps);
    if ranges.is_empty() {
        return Ok(0);
    }
    if ranges.iter().map(Range::len).sum::<usize>() > MOST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let pages = Pages::open()?;
    ranges.into_iter().map(|range| pages.copied(range)).sum()
}

/// Where files are mapped so, without those that code is loaded from: their data is written to as it is loaded.
fn written(maps: &str) -> Vec<Range<Address>> {
    let files = || maps.lines().filter_map(Mapping::parse);
    let code: HashSet<&str> =
        files().filter(|one| one.permissions.contains('x')).map(|one| one.file).collect();
    let data = files().filter(|one| one.is_copied_if_written() && !code.contains(one.file));
    data.map(|one| one.addresses).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn files_of_data_are_told_from_code() {
        let maps = "7f00-7f10 rw-p 00000000 08:01 77 /tmp/rows of a table.bin\n\
                    7f20-7f30 r--p 00000000 08:01 77 /tmp/rows of a table.bin\n\
                    7f30-7f40 rw-s 00000000 08:01 78 /tmp/shared.bin\n\
                    7f40-7f50 r-xp 00000000 08:01 79 /lib/libm.so\n\
                    7f50-7f60 rw-p 00010000 08:01 79 /lib/libm.so\n\
                    7f60-7f70 rw-p 00000000 00:00 0 \n\
                    7f70-7f80 rw-p 00000000 00:00 0                          [heap]\n";
        assert!(matches!(written(maps).as_slice(), [only] if *only == (0x7f00..0x7f10)));
    }

    #[test]
    fn pages_that_are_written_to_are_copies() {
        const PAGES: usize = 64;
        let page = 4096;
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![1; PAGES * page]).expect("room");
        let before = bytes().expect("every process may see its own");
        // SAFETY: a new mapping of a whole file.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), PAGES * page, access, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        let start = start.cast::<u8>();
        // SAFETY: within the mapping.
        let read: u32 = (0..PAGES).map(|at| u32::from(unsafe { start.add(at * page).read_volatile() })).sum();
        assert_eq!(read, PAGES as u32);
        assert_eq!(bytes().expect("as before"), before, "reading copies nothing");
        for at in 0..PAGES / 2 {
            // SAFETY: within the mapping.
            unsafe { start.add(at * page).write_volatile(2) };
        }
        assert_eq!(bytes().expect("as before"), before + (PAGES / 2 * page) as u64);
        // SAFETY: the mapping is not used any more.
        unsafe { libc::munmap(start.cast(), PAGES * page) };
    }
}
