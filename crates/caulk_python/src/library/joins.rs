//! What joins several tensors, arrays or tables into one that is as long as all of them together.

/// Functions, by their canonical names: the parts are the arguments, or the elements of the first.
pub(crate) const JOINS: &[&str] = &[
    "torch.cat",
    "torch.concat",
    "torch.concatenate",
    "torch.hstack",
    "torch.vstack",
    "torch.row_stack",
    "torch.column_stack",
    "numpy.append",
    "numpy.concatenate",
    "numpy.hstack",
    "numpy.vstack",
    "numpy.row_stack",
    "numpy.column_stack",
    "pandas.concat",
    "polars.concat",
    "pyarrow.concat_tables",
    "scipy.sparse.vstack",
    "scipy.sparse.hstack",
];

/// Methods of tables: the receiver is the first part.
pub(crate) const TABLE_METHODS: &[&str] = &["append", "_append", "vstack", "extend"];

/// Methods that give all of what they are called on: elsewhere, in another order, with other labels or without a graph.
pub(crate) const WHOLE: &[&str] = &[
    "detach",
    "clone",
    "contiguous",
    "cpu",
    "cuda",
    "to",
    "float",
    "half",
    "double",
    "numpy",
    "copy",
    "astype",
    "reset_index",
    "set_index",
    "sort_index",
    "sort_values",
    "fillna",
];

/// Whether a function or method of this last name may join.
pub(crate) fn may_join(name: &str) -> bool {
    let last = |known: &&str| known.rsplit('.').next() == Some(name);
    JOINS.iter().any(last) || TABLE_METHODS.contains(&name)
}
