//! Lightning, Transformers, accelerate and other training frameworks.

use super::entry::{Entry, Gives, gives, noted};

pub(super) const TABLE: &[Entry] = &[
    gives("lightning.*", Gives::Unknown),
    gives("lightning.seed_everything", Gives::Number),
    gives("lightning.Trainer", Gives::Library),
    gives("lightning.fabric.Fabric", Gives::Library),
    noted("lightning.fabric.Fabric.backward", Gives::None),
    gives("transformers.*", Gives::Unknown),
    gives("transformers.A*", Gives::Library),
    noted("transformers.Trainer", Gives::Library),
    gives("accelerate.*", Gives::Unknown),
    gives("accelerate.Accelerator", Gives::Library),
    noted("accelerate.Accelerator.backward", Gives::None),
    gives("accelerate.Accelerator.prepare", Gives::Zipped),
    // Source: accelerate, "Accelerator": of a single process they give what they are given, with its graph.
    gives("accelerate.Accelerator.gather", Gives::Argument),
    gives("accelerate.Accelerator.gather_for_metrics", Gives::Argument),
    gives("accelerate.Accelerator.reduce", Gives::Argument),
    gives("accelerate.Accelerator.pad_across_processes", Gives::Argument),
    gives("wandb.*", Gives::Library),
    gives("mlflow.*", Gives::Library),
    gives("tensorboardX.*", Gives::Library),
];
