//! The sampler in real programs: in C and C++, with an empty Python around it, beside other allocators, in programs that
//! are not meant, and in the interpreters that are at hand.

mod accuracy;
mod allocators;
mod build;
mod children;
mod native;
mod program;
mod python;
mod sums;
mod tools;
