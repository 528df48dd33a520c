//! What looks at the numbers of a tensor and never at its graph, and gives the same with and without one.
//!
//! Source: the reference at pytorch.org/docs, torch 2.x. What is missing here is taken to look.

/// Methods that give one tensor.
pub(crate) const METHODS: &[&str] = &[
    "abs",
    "add",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "ceil",
    "clamp",
    "clone",
    "contiguous",
    "cos",
    "cpu",
    "cuda",
    "cumsum",
    "div",
    "double",
    "eq",
    "exp",
    "expand",
    "flatten",
    "float",
    "floor",
    "ge",
    "gt",
    "half",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsumexp",
    "long",
    "lt",
    "matmul",
    "mean",
    "mul",
    "ne",
    "neg",
    "norm",
    "permute",
    "pow",
    "prod",
    "reciprocal",
    "relu",
    "reshape",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "sub",
    "sum",
    "t",
    "tanh",
    "to",
    "transpose",
    "unsqueeze",
    "var",
    "view",
];
/// Methods that give one tensor or several, by their arguments.
pub(crate) const REDUCTIONS: &[&str] = &["max", "median", "min"];
/// Methods that give numbers, or a tensor that never has a graph.
pub(crate) const READERS: &[&str] =
    &["__len__", "detach", "dim", "element_size", "item", "nelement", "numel", "size", "tolist"];
/// Attributes that tell nothing of a graph.
pub(crate) const ATTRIBUTES: &[&str] = &["data", "device", "dtype", "ndim", "shape"];
/// Functions that give one tensor.
pub(crate) const FUNCTIONS: &[&str] = &[
    "torch.abs",
    "torch.add",
    "torch.amax",
    "torch.amin",
    "torch.bmm",
    "torch.cat",
    "torch.clamp",
    "torch.concat",
    "torch.cos",
    "torch.dot",
    "torch.einsum",
    "torch.exp",
    "torch.hstack",
    "torch.log",
    "torch.matmul",
    "torch.maximum",
    "torch.mean",
    "torch.minimum",
    "torch.mm",
    "torch.mul",
    "torch.norm",
    "torch.pow",
    "torch.sigmoid",
    "torch.sin",
    "torch.softmax",
    "torch.sqrt",
    "torch.square",
    "torch.stack",
    "torch.std",
    "torch.sub",
    "torch.sum",
    "torch.tanh",
    "torch.var",
    "torch.vstack",
    "torch.linalg.norm",
    "torch.nn.functional.binary_cross_entropy",
    "torch.nn.functional.binary_cross_entropy_with_logits",
    "torch.nn.functional.cosine_similarity",
    "torch.nn.functional.cross_entropy",
    "torch.nn.functional.gelu",
    "torch.nn.functional.huber_loss",
    "torch.nn.functional.interpolate",
    "torch.nn.functional.kl_div",
    "torch.nn.functional.l1_loss",
    "torch.nn.functional.linear",
    "torch.nn.functional.log_softmax",
    "torch.nn.functional.mse_loss",
    "torch.nn.functional.nll_loss",
    "torch.nn.functional.normalize",
    "torch.nn.functional.pad",
    "torch.nn.functional.relu",
    "torch.nn.functional.smooth_l1_loss",
    "torch.nn.functional.softmax",
    "torch.nn.functional.softplus",
    "torch.nn.functional.triplet_margin_loss",
];
/// Classes whose objects, when called, give one tensor.
pub(crate) const LOSSES: &[&str] = &[
    "torch.nn.BCELoss",
    "torch.nn.BCEWithLogitsLoss",
    "torch.nn.CosineEmbeddingLoss",
    "torch.nn.CrossEntropyLoss",
    "torch.nn.HuberLoss",
    "torch.nn.KLDivLoss",
    "torch.nn.L1Loss",
    "torch.nn.MSELoss",
    "torch.nn.NLLLoss",
    "torch.nn.SmoothL1Loss",
    "torch.nn.TripletMarginLoss",
];
/// Functions that give a tensor of their own.
pub(crate) const FRESH: &[&str] =
    &["torch.empty", "torch.full", "torch.ones", "torch.rand", "torch.randn", "torch.tensor", "torch.zeros"];
/// Python's functions that give numbers.
pub(crate) const TO_NUMBER: &[&str] = &["bool", "float", "int", "isinstance", "len", "range"];
/// Python's functions that hand on what they are given, or what is in it.
pub(crate) const HAND_ON: &[&str] =
    &["abs", "enumerate", "list", "max", "min", "reversed", "round", "sorted", "sum", "tuple", "zip"];
/// Containers that Python's own classes make, empty or of what is given.
pub(crate) const CONTAINERS: &[&str] =
    &["collections.defaultdict", "collections.deque", "deque", "defaultdict", "dict", "list"];
/// Methods by which a container gets longer.
pub(crate) const GATHER: &[&str] = &["append", "appendleft", "extend", "insert"];
/// Methods by which a container gives something of what is in it, or all.
pub(crate) const TAKE: &[&str] = &["copy", "get", "items", "keys", "pop", "popleft", "values"];
/// Methods by which a container gives back.
pub(crate) const DROP: &[&str] = &["clear"];
