//! A sampled heap profiler inside somebody else's process, by `LD_PRELOAD`.
//!
//! Every allocation goes to the allocator as it came: same function, alignment and size; but for the few small objects of
//! Python's that are sampled, which come from malloc in place of its pools ([`pymalloc`]). One in so many bytes is noted
//! with the Python stack that asked for it, and taken off when it is given back. What lives, by stack, stands in shared
//! memory that the supervisor made, and outlives the process. So do exact sums of all that malloc has handed out ([`sums`]).
//!
//! Nothing here allocates through malloc, waits for a lock, unwinds or calls into Python, but for [`api`], which the
//! agent calls with the interpreter's lock held, and [`clock`], which calls the agent with it, some times a second. Where
//! anything is amiss, samples are left out and counted.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the heap sampler is for 64-bit Linux");

mod api;
mod arenas;
mod before;
mod chunk;
mod claim;
mod clock;
mod environment;
mod filter;
mod fork;
mod governor;
mod heads;
mod hooks;
mod lent;
mod line;
mod live;
mod local;
mod mappings;
mod maps;
mod maths;
mod once;
mod passes;
mod pools;
mod probe;
mod process;
mod pymalloc;
mod python;
mod real;
mod sampler;
mod slot;
mod stacks;
mod started;
mod state;
mod sums;
mod threads;

/// Runs when the library is loaded, before any of the program's own code.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    real::resolve();
    real::look_for_new();
    process::start();
    sums::start();
    fork::watch();
}
