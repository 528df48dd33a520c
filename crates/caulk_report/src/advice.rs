//! The change that a finding asks for, in words.

use caulk_core::{Advice, Applicability, Finding, Fix, LibraryHolder, Remedy, SuggestedChange};

use crate::message::per_unit;

/// The change of a finding, with its words.
pub fn fix(finding: &Finding) -> Option<Fix> {
    finding.remedy.as_ref().map(fix_of)
}

/// A change, with its words.
pub fn fix_of(remedy: &Remedy) -> Fix {
    let fix = match &remedy.change {
        SuggestedChange::Fix(fix) => fix.clone(),
        SuggestedChange::Advice(Advice::Class(class)) => class.advice(),
        SuggestedChange::Advice(advice) => {
            Fix { applicability: Applicability::DisplayOnly, description: words(advice), edits: Vec::new() }
        }
    };
    let Some(rate) = remedy.values else { return fix };
    let description = format!(
        "{}; the values themselves stay, {}: keep fewer of them, or less of each, as well",
        fix.description.trim_end_matches('.'),
        per_unit(rate)
    );
    Fix { description, ..fix }
}

fn words(advice: &Advice) -> String {
    let text = match advice {
        Advice::Class(class) => return class.advice().description,
        Advice::Release(held, object) => return release(*held, object),
        Advice::KeepLess(container) => {
            return format!("keep less in `{container}`, or drop what is old: what is made here stays there");
        }
        Advice::KeptLoaders(keeper) => {
            return format!(
                "`{keeper}` keeps every loader, and these their workers: keep the last one alone, or make them without \
                 `persistent_workers=True`"
            );
        }
        Advice::Room => "nothing, where there is room for it; else bound it at less",
        Advice::FewerParameters => {
            "take out what is not trained any more with its state (`del optimizer.state[parameter]`, and its \
             group), or make a new optimizer and drop the old one"
        }
        Advice::FewerAtExit => {
            "register one function, before the loop, or take it out again (`atexit.unregister(function)`): none of them \
             runs before the program ends"
        }
        Advice::KeptFigures => {
            "let go of each figure once it is saved (keep its file, or the numbers that it shows), or draw on one figure again \
             after `fig.clear()`"
        }
        Advice::PiledArtists => {
            "wipe the Axes before drawing again, `ax.clear()`, or change what is drawn: `line.set_data(...)`, \
             `points.set_offsets(...)`, `image.set_data(...)`"
        }
        Advice::CutChain => {
            "keep of the object before only what is needed of it (a number, say), or let go of what it refers to itself"
        }
        Advice::LastRows => {
            "keep the last rows alone (`x = x[-most:].clone()`), or a mean or another summary that is updated"
        }
        Advice::Discard => {
            "take each element out when it is done with (`.discard(element)`), or empty the set (`.clear()`)"
        }
        Advice::WriteOut => "write it to a file as it comes, or empty it (`.clear()`) once it is used",
        Advice::RegisterOnce => {
            "register it once, before the loop, or take it out again when it is done with"
        }
        Advice::BoundSource => "it is made anew of something that grows: bound that, or keep less of it here",
        Advice::UndoCall => "undo this call, or reset what it is called on, when what it adds is done with",
        Advice::CallOnce => "make this call once, or undo it when what it adds is done with",
        Advice::FindHolders => {
            "look for what keeps what is made here: `caulk.find_holders(value)` tells it of one value"
        }
        Advice::PadShapes => {
            "where inputs come in ever new shapes, torch compiles a kernel for each and keeps the last 1024 (oneDNN): pad them to a \
             few shapes, or run with `ONEDNN_PRIMITIVE_CACHE_CAPACITY=64`; else look for what keeps what is made \
             here: `caulk.find_holders(value)` tells it of one value"
        }
        Advice::WriteParts => "write each part to a file when it is made, or keep the last few only",
        Advice::KeepSums => {
            "keep of each step what is needed of it (a sum, a count, `.item()`), or write it out in parts: what an epoch \
             gathers grows with its length"
        }
        Advice::FewerObjects => {
            "where it matters: keep what stays in arrays (numpy, `array.array`) instead of many small objects, or run with \
             `PYTHONMALLOC=malloc`, which gives more of it back"
        }
        Advice::GpuPieces { expandable: false, .. } => {
            "where it matters: run with `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, so that segments grow instead of \
             leaving holes; or use few sizes of tensors: pad what changes in length"
        }
        Advice::GpuPieces { split: false, .. } => {
            "where it matters: use few sizes of tensors (pad what changes in length), or set `max_split_size_mb` in \
             `PYTORCH_CUDA_ALLOC_CONF`, so that large blocks stay whole"
        }
        Advice::GpuPieces { .. } => {
            "where it matters: use few sizes of tensors: pad what changes in length, and make lasting tensors first"
        }
        Advice::PinOnce => {
            "where it matters: pad batches to a few sizes, or pin one buffer before the loop and copy each batch into it: torch rounds each \
             size up to a power of two, and keeps every block"
        }
        Advice::Unfreeze => {
            "refer back through `weakref.ref(...)`, so that the objects are free with their last use; and call \
             `gc.freeze()` once, before the training, right after `gc.collect()`: what is frozen is never collected"
        }
        Advice::SharedMemory => {
            "each belongs to a tensor or segment in shared memory and is closed with it: let go of what keeps those"
        }
    };
    text.to_owned()
}

/// The release that a library offers. `object`: what keeps it, as the program writes it.
fn release(held: LibraryHolder, object: &str) -> String {
    match held {
            LibraryHolder::MetricState => format!(
                "call `{object}.reset()` once its result is read, after each `compute()`: until then it keeps what every \
                 update was given"
            ),
            LibraryHolder::Prepared => format!(
                "call `{object}.free_memory()` when what `prepare` was given is done with: it keeps models, optimizers and \
                 loaders until then"
            ),
            LibraryHolder::Timers => "call `cancel()` on each `threading.Timer` when it is no longer needed: until its time it is a \
                             thread that keeps its arguments"
                .to_owned(),
            LibraryHolder::Pickled => format!(
                "call `{object}.clear_memo()` after each `dump`, or use `pickle.dump(...)` for each record: a pickler keeps \
                 every object that it has written"
            ),
            LibraryHolder::Unpickled => "make a new `pickle.Unpickler` for each record, or use `pickle.load(...)`: it keeps every \
                                object that it has read"
                .to_owned(),
            LibraryHolder::Cycled => "replace `itertools.cycle(...)` by a generator that begins again: `while True: yield from loader`. \
                             `cycle` keeps a copy of all that its first pass gives"
                .to_owned(),
            LibraryHolder::Teed => "read the iterators of `itertools.tee(...)` in step, or make each from a separate source: what one has \
                           read is kept until the others have read it, too"
                .to_owned(),
            LibraryHolder::TasksInSet => format!(
                "have each task leave the set when it is done: `task.add_done_callback({object}.discard)`. A task that is \
                 done keeps its result"
            ),
            LibraryHolder::Tasks => format!(
                "take each task out of `{object}` when it is done: a task that is done keeps its result"
            ),
            LibraryHolder::TasksPending => format!(
                "let the tasks in `{object}` end: each leaves it at its end, and none does. See what they wait for, or start no \
                 more than a limit allows (`asyncio.Semaphore`)"
            ),
            LibraryHolder::Futures => format!(
                "take each future out of `{object}` once its result is read: it keeps the result and what it was called with"
            ),
            LibraryHolder::TensorKeys => format!(
                "use numbers as keys of `{object}`, `.tolist()` or `.item()`: tensors are compared by identity, so that each \
                 one is a new key, and counts and look-ups by value are wrong"
            ),
            LibraryHolder::Warnings => "give the warning a constant text: each different text is remembered, to be shown once".to_owned(),
            LibraryHolder::ExitStack => format!(
                "close `{object}` when the work of one step is done, `with contextlib.ExitStack() as ...:` within the loop: \
                 it keeps everything that was entered until then"
            ),
        }
}
