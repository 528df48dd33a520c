//! What names say where nothing else does, and what frameworks call by name.

use crate::flow::ids::LoopId;
use crate::flow::value::Kinds;

/// Words in names of models and losses, which are called for tensors with a graph.
const MODELS: &[&str] = &[
    "model",
    "net",
    "network",
    "criterion",
    "loss_fn",
    "encoder",
    "decoder",
    "generator",
    "discriminator",
    "policy",
    "backbone",
    "critic",
    "actor",
    "classifier",
    "module",
    "lossfn",
    "loss_func",
];
/// Words in names of what gives batches.
const LOADERS: &[&str] =
    &["loader", "dataloader", "loaders", "dataloaders", "batches", "dl", "data_iter", "batch_iter"];
/// Last words in names of what belongs to a loader and gives no batches: `loader_names`, `dataloader_kwargs`.
const OF_A_LOADER: &[&str] = &[
    "name", "names", "key", "keys", "kwargs", "args", "config", "configs", "cfg", "cfgs", "option",
    "options", "param", "params", "setting", "settings", "size", "sizes", "length", "lengths", "worker",
    "workers", "class", "classes", "cls", "type", "types", "path", "paths", "dir", "dirs", "id", "ids",
    "index", "seed", "fn", "spec", "specs",
];
/// Words in names of optimizers.
const OPTIMIZERS: &[&str] = &["optim", "optimizer", "optimizers", "opt", "adam", "sgd"];
/// Words in names of what counts epochs.
const EPOCHS: &[&str] = &["epoch", "epochs", "ep", "epo", "round", "rounds"];
/// Words in names of what counts steps.
const STEPS: &[&str] = &[
    "step",
    "steps",
    "iteration",
    "iterations",
    "iter",
    "iters",
    "itr",
    "batch",
    "batches",
    "episode",
    "episodes",
    "update",
    "updates",
    "generation",
];
/// Words in names of numbers that stand beside tensors.
const COUNTS: &[&str] = &["count", "counts", "num", "n", "size", "length", "len"];
/// Words in names of what counts folds.
const FOLDS: &[&str] = &["fold", "folds", "kfold", "split"];
/// Words in names of what a model has a fixed number of.
const PARTS: &[&str] = &[
    "layer",
    "layers",
    "block",
    "blocks",
    "head",
    "heads",
    "stage",
    "stages",
    "depth",
    "module",
    "modules",
    "param",
    "params",
    "parameters",
    "dim",
    "dims",
    "channel",
    "channels",
    "level",
    "levels",
    "scale",
    "scales",
    "branch",
    "class",
    "classes",
    "key",
    "keys",
    "group",
    "groups",
    "device",
    "devices",
    "gpu",
];

/// Names of what says how many frames a video has.
const FRAME_COUNTS: &[&str] = &[
    "frame_count",
    "frames_count",
    "n_frames",
    "nframes",
    "nb_frames",
    "num_frames",
    "total_frames",
    "number_of_frames",
];

/// Methods that nothing but tensors has.
pub(crate) const TENSOR_METHODS: &[&str] = &[
    "unsqueeze",
    "permute",
    "softmax",
    "log_softmax",
    "logsumexp",
    "clamp",
    "clamp_min",
    "masked_fill",
    "masked_select",
    "index_select",
    "scatter_add",
    "scatter_add_",
    "new_zeros",
    "new_ones",
    "view_as",
    "expand_as",
    "type_as",
    "retains_grad",
];

/// Whether tensors have a method that no class of models has.
pub(crate) fn no_module_has(method: &str) -> bool {
    matches!(method, "item" | "tolist" | "detach" | "detach_" | "numpy" | "backward" | "retain_grad")
}

/// Methods that objects of many libraries have: whose they are is not told by the name.
pub(crate) const COMMON_METHODS: &[&str] = &[
    "add",
    "append",
    "apply",
    "build",
    "call",
    "clear",
    "close",
    "compile",
    "compute",
    "config",
    "connect",
    "convert",
    "copy",
    "count",
    "create",
    "decode",
    "delete",
    "describe",
    "discard",
    "done",
    "draw",
    "dump",
    "emit",
    "encode",
    "end",
    "eval",
    "evaluate",
    "execute",
    "extend",
    "filter",
    "find",
    "finish",
    "fit",
    "flush",
    "format",
    "forward",
    "get",
    "group",
    "index",
    "info",
    "init",
    "insert",
    "is_set",
    "items",
    "join",
    "keys",
    "load",
    "lock",
    "log",
    "make",
    "map",
    "match",
    "merge",
    "name",
    "next",
    "open",
    "parse",
    "plot",
    "pop",
    "predict",
    "prepare",
    "process",
    "push",
    "put",
    "read",
    "record",
    "reduce",
    "register",
    "release",
    "remove",
    "render",
    "replace",
    "reset",
    "result",
    "resume",
    "run",
    "sample",
    "save",
    "score",
    "search",
    "seed",
    "select",
    "send",
    "set",
    "setup",
    "shape",
    "show",
    "shutdown",
    "size",
    "sort",
    "split",
    "start",
    "state",
    "stats",
    "step",
    "stop",
    "store",
    "submit",
    "sum",
    "to",
    "to_dict",
    "tokenize",
    "train",
    "transform",
    "update",
    "validate",
    "values",
    "view",
    "wait",
    "warn",
    "write",
];

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').filter(|word| !word.is_empty())
}

fn any_word(name: &str, known: &[&str]) -> bool {
    words(name).any(|word| is_any(word, known))
}

fn is_any(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Is something of this name called for a prediction or a loss?
pub(crate) fn is_model(name: &str) -> bool {
    is_any(name.trim_matches('_'), MODELS)
        || words(name).next_back_word().is_some_and(|last| is_any(last, MODELS))
}

/// Is a model applied by a method of this name?
pub(crate) fn applies(method: &str) -> bool {
    method == "forward" || method.starts_with("forward_")
}

/// Does something of this name give batches?
pub(crate) fn is_loader(name: &str) -> bool {
    const END: &str = "loader";
    let end = name.len().checked_sub(END.len()).and_then(|start| name.get(start..));
    let describes = words(name).next_back_word().is_some_and(|last| is_any(last, OF_A_LOADER));
    !describes && (any_word(name, LOADERS) || end.is_some_and(|end| end.eq_ignore_ascii_case(END)))
}

/// Is something of this name an optimizer?
pub(crate) fn is_optimizer(name: &str) -> bool {
    any_word(name, OPTIMIZERS)
}

/// Does something of this name count epochs?
pub(crate) fn is_epoch(name: &str) -> bool {
    any_word(name, EPOCHS)
}

/// Does something of this name count steps?
pub(crate) fn is_step(name: &str) -> bool {
    any_word(name, STEPS)
}

/// Is something of this name a number of things?
pub(crate) fn is_count(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    words(&lower).next_back_word().is_some_and(|last| COUNTS.contains(&last))
        || words(&lower).next().is_some_and(|first| matches!(first, "num" | "n"))
}

/// Does something of this name count folds?
pub(crate) fn is_fold(name: &str) -> bool {
    any_word(name, FOLDS)
}

/// Is something of this name as many as a video has frames?
pub(crate) fn is_frame_count(name: &str) -> bool {
    is_any(name, FRAME_COUNTS)
}

/// Does something of this name count what a model has?
pub(crate) fn is_part(name: &str) -> bool {
    any_word(name, PARTS)
}

trait LastWord<'a> {
    fn next_back_word(self) -> Option<&'a str>;
}

impl<'a, I: Iterator<Item = &'a str>> LastWord<'a> for I {
    fn next_back_word(self) -> Option<&'a str> {
        self.last()
    }
}

/// What a hook is called with, by the last name of what registers it.
pub(crate) fn hook_arguments(register: &str) -> &'static [Kinds] {
    const TENSORS: Kinds = Kinds::TENSOR.with(Kinds::UNKNOWN);
    match register {
        "register_forward_hook" | "register_module_forward_hook" => &[Kinds::MODULE, TENSORS, Kinds::TENSOR],
        "register_forward_pre_hook" | "register_module_forward_pre_hook" => &[Kinds::MODULE, TENSORS],
        _ => &[],
    }
}

/// A method that a framework calls on objects of classes derived from a base.
#[derive(Debug)]
pub(crate) struct Hook {
    /// Canonical name of the base, or the last part of it with a dot before it.
    pub(crate) base: &'static str,
    /// The method; a `*` at the end stands for anything.
    pub(crate) method: &'static str,
    /// The loops in which it is called.
    pub(crate) loops: &'static [LoopId],
    /// Graphs are recorded in it.
    pub(crate) recording: bool,
    /// What its first argument is, where that is known.
    pub(crate) argument: Option<Kinds>,
}

const fn hook(base: &'static str, method: &'static str, loops: &'static [LoopId]) -> Hook {
    Hook { base, method, loops, recording: true, argument: None }
}

const fn evaluating(base: &'static str, method: &'static str, loops: &'static [LoopId]) -> Hook {
    Hook { base, method, loops, recording: false, argument: None }
}

const TRAINING: &[LoopId] = &[LoopId::EPOCHS, LoopId::STEPS];
const VALIDATING: &[LoopId] = &[LoopId::EPOCHS, LoopId::VALIDATION];
const EPOCHLY: &[LoopId] = &[LoopId::EPOCHS];
const SAMPLING: &[LoopId] = &[LoopId::EPOCHS, LoopId::SAMPLES];
const STARTING: &[LoopId] = &[];
const CALLED: &[LoopId] = &[LoopId::CALLBACKS];

/// What frameworks call; the first that fits counts.
pub(crate) const HOOKS: &[Hook] = &[
    // Source: Lightning, "LightningModule", hooks; validation runs under `no_grad`.
    hook(".LightningModule", "training_step", TRAINING),
    hook(".LightningModule", "on_train_batch_start", TRAINING),
    hook(".LightningModule", "on_train_batch_end", TRAINING),
    hook(".LightningModule", "on_before_*", TRAINING),
    hook(".LightningModule", "on_after_backward", TRAINING),
    evaluating(".LightningModule", "validation_step", VALIDATING),
    evaluating(".LightningModule", "test_step", VALIDATING),
    evaluating(".LightningModule", "predict_step", VALIDATING),
    evaluating(".LightningModule", "on_validation_batch_*", VALIDATING),
    evaluating(".LightningModule", "on_test_batch_*", VALIDATING),
    hook(".LightningModule", "setup", STARTING),
    hook(".LightningModule", "on_fit_*", STARTING),
    hook(".LightningModule", "on_train_start", STARTING),
    hook(".LightningModule", "on_train_end", STARTING),
    hook(".LightningModule", "on_sanity_check_*", STARTING),
    hook(".LightningModule", "on_train_epoch_*", EPOCHLY),
    evaluating(".LightningModule", "on_validation_epoch_*", EPOCHLY),
    evaluating(".LightningModule", "on_validation_start", EPOCHLY),
    evaluating(".LightningModule", "on_validation_end", EPOCHLY),
    evaluating(".LightningModule", "on_test_*", EPOCHLY),
    evaluating(".LightningModule", "on_predict_*", EPOCHLY),
    evaluating(".LightningModule", "validation_epoch_end", EPOCHLY),
    hook(".LightningModule", "training_epoch_end", EPOCHLY),
    hook(".Callback", "on_train_batch_*", TRAINING),
    hook(".Callback", "on_fit_*", STARTING),
    hook(".Callback", "on_train_start", STARTING),
    hook(".Callback", "on_train_end", STARTING),
    hook(".Callback", "on_sanity_check_*", STARTING),
    hook(".Callback", "on_train_epoch_*", EPOCHLY),
    evaluating(".Callback", "on_validation_batch_*", VALIDATING),
    evaluating(".Callback", "on_validation_epoch_*", EPOCHLY),
    evaluating(".Callback", "on_validation_start", EPOCHLY),
    evaluating(".Callback", "on_validation_end", EPOCHLY),
    evaluating(".Callback", "on_test_batch_*", VALIDATING),
    evaluating(".Callback", "on_test_*", EPOCHLY),
    evaluating(".Callback", "on_predict_batch_*", VALIDATING),
    evaluating(".Callback", "on_predict_*", EPOCHLY),
    // Source: Transformers, "Callbacks" and "Trainer".
    hook(".TrainerCallback", "on_step_*", TRAINING),
    hook(".TrainerCallback", "on_substep_end", TRAINING),
    hook(".TrainerCallback", "on_log", TRAINING),
    hook(".TrainerCallback", "on_prediction_step", VALIDATING),
    hook(".TrainerCallback", "on_epoch_*", EPOCHLY),
    hook(".TrainerCallback", "on_evaluate", EPOCHLY),
    hook(".Trainer", "compute_loss", TRAINING),
    hook(".Trainer", "training_step", TRAINING),
    evaluating(".Trainer", "prediction_step", VALIDATING),
    evaluating(".Trainer", "evaluate", EPOCHLY),
    evaluating(".Trainer", "evaluation_loop", EPOCHLY),
    // torch itself.
    evaluating("torch.utils.data.Dataset", "__getitem__", SAMPLING),
    evaluating("torch.utils.data.IterableDataset", "__iter__", SAMPLING),
    evaluating("torch.autograd.Function", "forward", TRAINING),
    evaluating("torch.autograd.Function", "backward", TRAINING),
    hook("torch.nn.Module", "forward", TRAINING),
    // Python.
    Hook { argument: Some(Kinds::RECORD), ..hook("logging.*Handler", "emit", CALLED) },
    Hook { argument: Some(Kinds::RECORD), ..hook("logging.*Handler", "handle", CALLED) },
];
