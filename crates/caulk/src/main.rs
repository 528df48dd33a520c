//! The `caulk` command.

fn main() {}
