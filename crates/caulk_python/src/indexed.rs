//! The index of one file, made from its syntax tree.

use ruff_text_size::Ranged;

use crate::collect::collect;
use crate::index::Index;
use crate::project::Parsed;
use crate::resolve::{Meaning, Resolver};

/// What one file says by itself.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) index: Index,
    pub(crate) resolver: Resolver,
    /// What every operation's path may stand for.
    pub(crate) meanings: Vec<Vec<Meaning>>,
}

impl Indexed {
    /// Walks the file once.
    pub(crate) fn new(file: &Parsed) -> Self {
        let tree = file.tree();
        let mut index = collect(&file.source, &tree.body, tree.range());
        let resolver = Resolver::new(&index);
        let bound_methods = resolver.bound_methods(&index);
        index.ops.extend(bound_methods);
        let mut ops = std::mem::take(&mut index.ops);
        ops.retain(|op| !resolver.is_own_method(&index, op));
        index.ops = ops;
        let meanings =
            index.ops.iter().map(|op| resolver.meanings(&index, &op.path, op.place, op.anew)).collect();
        Self { index, resolver, meanings }
    }
}
