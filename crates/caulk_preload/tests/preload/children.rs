//! Programs that are not meant and inherit the sampler all the same: of another word size, linked statically, with a
//! sanitizer, with a preload of their own. Each runs as it would without.

use std::process::Command;

use caulk_wire::heap::Refusal;

use crate::build::{C, build, compiled, skipped};
use crate::program::{library, run, run_preloaded};
use crate::python::pythons;

const HELLO: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    int main(void) { char *block = malloc(5000000); puts(block ? \"hello\" : \"none\"); free(block); return 7; }";

/// Runs a small program that was built so; what else the loader may say is `noise`.
fn check(what: &str, compiler: &str, options: &[&str], noise: &str) {
    let (_folder, path) = match build(compiler, "hello.c", HELLO, options) {
        Ok(built) => built,
        Err(why) => return skipped(what, &why),
    };
    let run = run(&mut Command::new(path));
    assert_eq!(run.status.code(), Some(7), "{what}: {}", run.output);
    assert!(run.profiles.is_empty(), "{what}");
    let rest = run.output.strip_prefix("hello\n");
    let rest = rest.unwrap_or_else(|| panic!("{what}: {}", run.output));
    assert!(rest.is_empty() == noise.is_empty() && rest.contains(noise), "{what}: {rest}");
}

#[test]
fn programs_that_are_linked_statically_do_not_see_it() {
    check("static", "cc", &["-static"], "");
}

/// The loader of the other word size says one line of its own, and goes on.
#[test]
fn programs_of_another_word_size_are_told_that_it_is_not_for_them() {
    check("32 bits", "cc", &["-m32"], "ignored");
}

#[test]
fn a_preload_of_a_childs_own_replaces_it_or_goes_before_it() {
    let run_as = |preload: &str| run_preloaded(preload, Command::new(compiled()).arg("keep"));
    let replaced = run_as("");
    assert!(replaced.status.success() && replaced.profiles.is_empty(), "{}", replaced.output);
    let twice = run_as(&format!("{0}:{0}", library().display()));
    assert_eq!(twice.first().live() >> 27, 1, "loaded once");
    let before = run_as(&format!("libm.so.6:{}", library().display()));
    assert_eq!(before.first().live() >> 27, 1, "a library without an allocator");
}

/// A library that a program loads by itself comes too late: the hooks are the C library's then.
#[test]
fn a_program_that_loads_it_later_is_left_alone_and_may_unload_it() {
    let program = format!(
        "import _ctypes, ctypes, os\n\
         library = ctypes.CDLL({:?})\n\
         refusal = library.caulk_heap_prepare()\n\
         library.caulk_heap_begin(refusal)\n\
         kept = [bytearray(1_000_000) for _ in range(100)]\n\
         library.caulk_heap_snapshot(1)\n\
         _ctypes.dlclose(library._handle)\n\
         child = os.fork()\n\
         if not child: os._exit(0)\n\
         print(refusal, os.waitpid(child, 0)[1])\n",
        library().display().to_string()
    );
    for python in pythons() {
        let run = run_preloaded("", Command::new(&python).args(["-c", &program]));
        let expected = format!("{} 0\n", Refusal::NotFirst as u32);
        assert!(run.status.success() && run.output == expected, "{}: {}", python.display(), run.output);
        assert!(run.profiles.is_empty(), "{}", python.display());
    }
}

/// The sanitizer wants to be first and ends the program otherwise, but for this option, which `caulk run` sets.
#[test]
fn programs_with_the_address_sanitizer_run() {
    let (_folder, path) = match build("cc", "program.c", C, &["-fsanitize=address"]) {
        Ok(built) => built,
        Err(why) => return skipped("address sanitizer", &why),
    };
    for mode in ["keep", "threads", "libraries"] {
        let mut command = Command::new(&path);
        command.arg(mode).env("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
        run(&mut command).first().is_sound();
    }
}
