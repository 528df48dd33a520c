//! Other allocators that the program preloads: before the sampler nothing is sampled, behind it all is.

use std::path::PathBuf;
use std::process::Command;

use caulk_wire::heap::{Refusal, header};

use crate::build::{CC, build, compiled, skipped};
use crate::program::{library, run, run_preloaded};
use crate::python::pythons;

const ALLOCATORS: [(&str, &str); 3] = [
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("libmimalloc.so.2", "libmimalloc2.0"),
];
const FOLDERS: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];

pub(crate) fn installed() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (name, package) in ALLOCATORS {
        match FOLDERS.iter().map(|folder| PathBuf::from(folder).join(name)).find(|path| path.is_file()) {
            Some(path) => found.push(path),
            None => skipped(name, &format!("Debian's package `{package}` has it")),
        }
    }
    found
}

#[test]
fn behind_the_sampler_they_serve_what_is_sampled() {
    for allocator in installed() {
        let preload = format!("{}:{}", library().display(), allocator.display());
        for mode in ["keep", "threads", "fork", "jumps", "libraries", "signals"] {
            let run = run_preloaded(&preload, Command::new(compiled()).arg(mode));
            let profile = run.first();
            assert!(profile.count(header::SAMPLES) > 0, "{mode} with {}", allocator.display());
            assert_eq!(profile.count(header::STALE), 0, "{mode} with {}", allocator.display());
            if mode == "keep" {
                let live = profile.live() as f64 / 1e6;
                assert!((150.0..250.0).contains(&live), "{live} with {}", allocator.display());
            }
        }
    }
}

/// Their own `operator new` calls no malloc, so that what it hands out is not sampled; nor is its giving back.
#[test]
fn what_cpp_asks_them_for_by_new_is_theirs_alone() {
    let (_folder, path) = match build("c++", "program.cc", CC, &["-std=c++17"]) {
        Ok(built) => built,
        Err(why) => return skipped("C++", &why),
    };
    for allocator in installed() {
        let preload = format!("{}:{}", library().display(), allocator.display());
        for (asked, counted) in [("malloc", 40), ("new", 0)] {
            let run = run_preloaded(&preload, Command::new(&path).arg(asked));
            let profile = run.first();
            assert_eq!(profile.count(header::STALE), 0, "{asked} of {}", allocator.display());
            assert_eq!(profile.live() / 1_000_000, counted, "{asked} of {}", allocator.display());
        }
    }
}

#[test]
fn before_the_sampler_they_are_left_alone() {
    for allocator in installed() {
        let preload = format!("{}:{}", allocator.display(), library().display());
        for mode in ["keep", "threads", "fork"] {
            let run = run_preloaded(&preload, Command::new(compiled()).arg(mode));
            assert!(run.status.success(), "{mode} with {}: {}", allocator.display(), run.output);
            assert!(run.profiles.is_empty(), "{mode} with {}", allocator.display());
        }
    }
}

/// Small objects are taken from malloc and given back by the interpreter: both must be the same allocator's.
#[test]
fn an_interpreter_runs_on_them_in_either_order() {
    let program = "import ctypes, os\n\
        library = ctypes.CDLL(None)\n\
        refusal = library.caulk_heap_prepare()\n\
        library.caulk_heap_begin(refusal)\n\
        kept = [str(number) * 9 for number in range(200_000)]\n\
        del kept[::2]\n\
        library.caulk_heap_snapshot(1)\n\
        print(refusal, flush=True)\n\
        os._exit(0)";
    let python = pythons().remove(0);
    for allocator in installed() {
        let pair = [library(), allocator.clone()].map(|path| path.display().to_string());
        let first = run_preloaded(&pair.join(":"), Command::new(&python).args(["-c", program]));
        assert!(first.first().live() > 5_000_000, "{}", allocator.display());
        let second =
            run_preloaded(&format!("{}:{}", pair[1], pair[0]), Command::new(&python).args(["-c", program]));
        let expected = format!("{}\n", Refusal::NotFirst as u32);
        assert!(second.status.success() && second.output == expected, "{}", second.output);
        assert!(second.profiles.is_empty(), "{}", allocator.display());
    }
    // The same program without any of them.
    assert!(run(Command::new(&python).args(["-c", program])).first().live() > 5_000_000);
}
