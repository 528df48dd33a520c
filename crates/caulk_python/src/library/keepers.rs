//! Objects of libraries that keep what some of their methods are given, until others give it back.

/// Such a class.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// What makes its objects, by dotted names.
    pub(crate) made_by: &'static [&'static str],
    /// Methods that keep their arguments.
    keeps: &'static [&'static str],
    /// Methods that make an object for each of their arguments' values, and keep it.
    keyed: &'static [&'static str],
    /// Methods that give back all of it, and then some of it.
    gives_back: &'static [&'static str],
}

/// The classes, by what their libraries document.
pub(crate) const KEEPERS: &[Keeper] = &[
    Keeper {
        made_by: &["networkx.Graph", "networkx.DiGraph", "networkx.MultiGraph", "networkx.MultiDiGraph"],
        keeps: &[
            "add_node",
            "add_nodes_from",
            "add_edge",
            "add_edges_from",
            "add_weighted_edges_from",
            "update",
        ],
        keyed: &[],
        gives_back: &[
            "clear",
            "clear_edges",
            "remove_node",
            "remove_nodes_from",
            "remove_edge",
            "remove_edges_from",
        ],
    },
    // Source: accelerate, `Accelerator.prepare`: each is appended to `_models`, `_optimizers`, `_dataloaders`.
    Keeper {
        made_by: &["accelerate.Accelerator"],
        keeps: &["prepare", "prepare_model", "prepare_optimizer", "prepare_scheduler"],
        keyed: &[],
        gives_back: &["free_memory", "clear"],
    },
    Keeper {
        made_by: &[
            "sortedcontainers.SortedList",
            "sortedcontainers.SortedKeyList",
            "sortedcontainers.SortedSet",
            "sortedcontainers.SortedDict",
        ],
        keeps: &["add", "update", "setdefault"],
        keyed: &[],
        gives_back: &["clear", "pop", "popitem", "remove", "discard"],
    },
    Keeper {
        made_by: &["intervaltree.IntervalTree"],
        keeps: &["add", "addi", "append", "appendi", "update"],
        keyed: &[],
        gives_back: &[
            "clear",
            "remove",
            "removei",
            "discard",
            "discardi",
            "remove_overlap",
            "remove_envelop",
            "chop",
        ],
    },
    // Source: faiss, "Faiss indexes": vectors are copied into the index; `reset` and `remove_ids` take them out.
    Keeper {
        made_by: &[
            "faiss.IndexFlat",
            "faiss.IndexFlatL2",
            "faiss.IndexFlatIP",
            "faiss.IndexHNSWFlat",
            "faiss.index_factory",
        ],
        keeps: &["add", "add_with_ids"],
        keyed: &[],
        gives_back: &["reset", "remove_ids"],
    },
    // Source: the reference of Python, "pickle", `Pickler.clear_memo`: the memo keeps what was pickled.
    Keeper {
        made_by: &["pickle.Pickler", "cloudpickle.Pickler", "cloudpickle.CloudPickler", "dill.Pickler"],
        keeps: &["dump"],
        keyed: &[],
        gives_back: &["clear_memo"],
    },
    // Source: the documentation of the Prometheus client for Python, "Labels": each set of values is a time series,
    // which the metric keeps until `remove` or `clear`.
    Keeper {
        made_by: &[
            "prometheus_client.Counter",
            "prometheus_client.Gauge",
            "prometheus_client.Histogram",
            "prometheus_client.Summary",
        ],
        keeps: &[],
        keyed: &["labels"],
        gives_back: &["clear", "remove", "remove_by_labels"],
    },
];

impl Keeper {
    /// The class whose objects something makes, by its dotted name.
    pub(crate) fn made_by(name: &str) -> Option<&'static Self> {
        KEEPERS.iter().find(|keeper| keeper.made_by.contains(&name))
    }

    pub(crate) fn keeps(&self, method: &str) -> bool {
        self.keeps.contains(&method)
    }

    pub(crate) fn keeps_keyed(&self, method: &str) -> bool {
        self.keyed.contains(&method)
    }

    /// Whether what it keeps is found by arguments.
    pub(crate) fn is_keyed(&self) -> bool {
        !self.keyed.is_empty()
    }

    /// The method that gives back all of it.
    pub(crate) fn first_release(&self) -> &'static str {
        self.gives_back[0]
    }

    pub(crate) fn gives_back(&self, method: &str) -> bool {
        self.gives_back.contains(&method)
    }
}
