//! The circles that are left, each with the reason. This list may only shrink.

/// Files of a crate that are known to be in a circle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub name: &'static str,
    pub files: &'static [&'static str],
    pub reason: &'static str,
}

/// Every known circle, in order of crates.
pub(crate) const KNOWN: &[Known] = &[Known {
    name: "caulk_agent",
    files: &["frames/locals.rs", "handlers.rs", "later.rs"],
    reason: "reading a local may run a handler of a signal, which is recognised by its locals",
}];
