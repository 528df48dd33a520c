//! Keeps the library loaded: what it has the C library call at a fork must be there when a program that loaded it by itself
//! has unloaded it.

fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
