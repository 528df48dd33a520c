//! The circles that are left, each with the reason. This list may only shrink.

/// Files of a crate that are known to be in a circle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub name: &'static str,
    pub files: &'static [&'static str],
    pub reason: &'static str,
}

/// Every known circle, in order of crates.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        name: "caulk_python",
        files: &[
            "collect.rs",
            "index.rs",
            "likely.rs",
            "loads.rs",
            "path.rs",
            "resolve.rs",
            "sites.rs",
            "text.rs",
            "value.rs",
        ],
        reason: "this half, `Module`, is to be removed",
    },
    Known {
        name: "caulk_python",
        files: &[
            "edit.rs",
            "facts.rs",
            "fixes/backward.rs",
            "fixes/bounds.rs",
            "fixes/calls.rs",
            "fixes/store.rs",
            "limit.rs",
            "module.rs",
            "query.rs",
        ],
        reason: "this half, `Module`, is to be removed",
    },
    Known {
        name: "caulk_agent",
        files: &["frames/locals.rs", "handlers.rs", "later.rs"],
        reason: "reading a local may run a handler of a signal, which is recognised by its locals",
    },
];
