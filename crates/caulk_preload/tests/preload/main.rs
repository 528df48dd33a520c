//! The sampler in real programs: in C, with an empty Python around it, and in the interpreters that are at hand.

mod native;
mod program;
mod python;
