//! What libraries' functions, classes and methods give, as tables: one file per library.
//!
//! Names are dotted and canonical. `prefix.*` stands for anything below a prefix, `prefix.A*` for what begins with a
//! capital: classes. The most exact entry counts.

mod entry;
mod imaging;
pub(crate) mod joins;
mod keepers;
mod matplotlib;
pub(crate) mod numbers;
mod numpy;
mod python;
pub(crate) mod roles;
mod tables;
mod torch;
mod trainers;

pub(crate) use self::entry::{Entry, Gives};
pub(crate) use self::keepers::Keeper;

use rustc_hash::{FxHashMap, FxHashSet};

/// Everything that is known of libraries.
#[derive(Debug)]
pub(crate) struct Library {
    entries: FxHashMap<&'static str, Entry>,
    /// Last parts of all names, and names of methods that many libraries have.
    last_names: FxHashSet<&'static str>,
}

impl Library {
    pub(crate) fn new() -> Self {
        let tables = [
            python::TABLE,
            torch::TABLE,
            numpy::TABLE,
            matplotlib::TABLE,
            tables::TABLE,
            imaging::TABLE,
            trainers::TABLE,
        ];
        let keepers = keepers::KEEPERS.iter().flat_map(|keeper| keeper.made_by);
        let keepers = keepers.map(|name| (*name, entry::gives(name, Gives::Library)));
        let entries: FxHashMap<_, _> =
            keepers.chain(tables.into_iter().flatten().map(|entry| (entry.name, *entry))).collect();
        let own = entries.keys().filter_map(|name| name.rsplit('.').next());
        let last_names = own.chain(roles::COMMON_METHODS.iter().copied()).collect();
        Self { entries, last_names }
    }

    /// Whether some library has a function or method of this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.last_names.contains(name)
    }

    /// The entry for a canonical name.
    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        if let Some(exact) = self.entries.get(name) {
            return Some(*exact);
        }
        let class = name.rsplit('.').next()?.chars().next().is_some_and(char::is_uppercase);
        let mut prefix = name;
        while let Some(at) = prefix.rfind('.') {
            prefix = &prefix[..at];
            let classes = class.then(|| self.entries.get(format!("{prefix}.A*").as_str())).flatten();
            if let Some(found) = classes.or_else(|| self.entries.get(format!("{prefix}.*").as_str())) {
                return Some(*found);
            }
        }
        None
    }
}

/// The name that the tables use for something with several names.
pub(crate) fn canonical(name: &str) -> String {
    const MOVED: &[(&str, &str)] = &[
        ("pytorch_lightning", "lightning"),
        ("lightning.pytorch", "lightning"),
        ("lightning_fabric", "lightning.fabric"),
        ("pylab", "matplotlib.pyplot"),
        ("torch.functional", "torch"),
        ("torch.multiprocessing", "multiprocessing"),
        ("multiprocess", "multiprocessing"),
        ("tqdm.auto", "tqdm"),
        ("tqdm.notebook", "tqdm"),
        ("tqdm.rich", "tqdm"),
        ("torch.cuda.amp", "torch.amp"),
        ("torch.tensor.Tensor", "torch.Tensor"),
        ("torch.autograd.grad_mode", "torch"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch.utils.data.dataloader", "torch.utils.data"),
        ("torch.utils.data.dataset", "torch.utils.data"),
        ("torch.nn.modules.module", "torch.nn"),
        ("torch.optim.optimizer", "torch.optim"),
        ("builtins", ""),
    ];
    for (from, to) in MOVED {
        if let Some(rest) = name.strip_prefix(from)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return format!("{to}{rest}").trim_start_matches('.').to_owned();
        }
    }
    name.to_owned()
}
