//! What malloc has handed out, counted block by block, against what it says itself (`mallinfo2`): in the program, after
//! each call, and from outside, after its end.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use caulk_wire::heap::header;
use tempfile::TempDir;

use crate::allocators::installed;
use crate::build::build;
use crate::program::{Run, library, run, run_preloaded};

const SUMS: &str = include_str!("sums.c");
/// Free blocks that a thread keeps for itself count as handed out with malloc: to the byte, it must keep none.
const NO_THREAD_CACHE: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");

fn compiled() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("cc", "sums.c", SUMS, &[]).expect("Debian's `gcc` builds it"));
    &built.1
}

/// Runs a mode of the program without thread caches; it compares by itself.
#[track_caller]
fn exactly(mode: &str) -> Run {
    let run = run(Command::new(compiled()).arg(mode).env(NO_THREAD_CACHE.0, NO_THREAD_CACHE.1));
    run.first();
    run
}

#[test]
fn every_shape_of_every_call_is_counted_to_the_byte() {
    exactly("shapes");
}

#[test]
fn what_changes_agrees_within_half_a_percent_thread_caches_and_all() {
    run(Command::new(compiled()).arg("mixture")).first();
}

#[test]
fn threads_free_what_others_made() {
    exactly("threads");
}

#[test]
fn threads_that_end_leave_what_they_made_and_their_place() {
    let run = exactly("threadends");
    // The line of all, the main thread's, and one for those that came one after the other; few if their ends take time.
    let lines = run.first().slot().field(header::LINES);
    assert!((3..12).contains(&lines), "{lines}");
}

#[test]
fn threads_beyond_the_last_line_are_counted_too() {
    exactly("crowd");
}

#[test]
fn forked_children_begin_with_what_their_parents_had() {
    let run = exactly("forks");
    // From outside: the parent's 20 MB; 10 MB less in the child, 20 MB less in its child.
    let mut in_use: Vec<u64> =
        run.profiles.iter().map(|profile| profile.in_use().bytes / 1_000_000).collect();
    in_use.sort_unstable();
    let [grandchild, child, parent] = in_use[..] else { panic!("{in_use:?}") };
    assert!(parent - child == 9 || parent - child == 10, "{in_use:?}");
    assert!(child - grandchild == 9 || child - grandchild == 10, "{in_use:?}");
}

#[test]
fn what_the_c_library_and_the_loader_allocate_is_counted() {
    exactly("libraries");
}

#[test]
fn what_a_killed_program_had_in_use_can_be_read_after_its_end() {
    let run = run(Command::new(compiled()).arg("killed").env(NO_THREAD_CACHE.0, NO_THREAD_CACHE.1));
    assert_eq!(run.status.signal(), Some(9), "{}", run.output);
    let said: u64 = run.output.trim().parse().expect("it says what malloc has handed out");
    let in_use = run.profiles[0].in_use();
    assert_eq!(in_use.bytes, said);
    assert!(in_use.blocks >= 80_001 && in_use.blocks < 80_100, "{}", in_use.blocks);
    assert!(in_use.singly_bytes >= 50_000_000, "{}", in_use.singly_bytes);
}

/// Heads of other allocators' blocks are not known: their own statistics tell.
#[test]
fn nothing_is_counted_on_another_allocator() {
    for allocator in installed() {
        let libraries = format!("{}:{}", library().display(), allocator.display());
        let run = run_preloaded(&libraries, Command::new(compiled()).arg("none"));
        assert_eq!(run.first().slot().field(header::LINES), 0, "{}", allocator.display());
    }
}

/// A wrapper of malloc's that comes between the two may hand out addresses within glibc's blocks.
#[test]
fn nothing_is_counted_where_a_library_comes_between() {
    let wrapper = "#include <stddef.h>\n\
        extern void *__libc_malloc(size_t);\nextern void __libc_free(void *);\n\
        void *malloc(size_t size) { char *block = __libc_malloc(size + 64); return block ? block + 64 : NULL; }\n\
        void free(void *block) { if (block) __libc_free((char *)block - 64); }\n\
        void *calloc(size_t count, size_t size) { char *block = malloc(count * size);\n\
        for (size_t at = 0; block && at < count * size; at++) block[at] = 0; return block; }\n\
        void *realloc(void *old, size_t size) { char *block = malloc(size); (void)old; return block; }\n";
    let (folder, _) = build("cc", "wrapper.c", wrapper, &["-shared", "-fPIC"]).expect("`gcc` builds it");
    let libraries = format!("{}:{}", library().display(), folder.path().join("program").display());
    let run = run_preloaded(&libraries, Command::new(compiled()).arg("none"));
    assert_eq!(run.first().slot().field(header::LINES), 0);
}
