//! The facts of a finding in words.

use std::fmt::Write as _;

use caulk_core::{Bytes, ElementFacts, Evidence, KindCount, MadeAt, Series};

use crate::message::{per_unit, unit_name};

/// One fact in words, without a period.
pub fn evidence_text(evidence: &Evidence) -> String {
    match evidence {
        Evidence::BytesInUse { series, rate, units } => {
            let what = match series {
                Series::CudaAllocated => "bytes allocated on the GPU",
                Series::CudaRest => "bytes on the GPU outside torch's allocator",
                _ => "bytes in use",
            };
            format!("{what} grow by {} over {units:.0} {}s", per_unit(*rate), unit_name(rate.unit))
        }
        Evidence::Resident { rate, units } => format!(
            "resident bytes, which no allocator that tells what it has in use accounts for, grow by {} over {units:.0} {}s",
            per_unit(*rate),
            unit_name(rate.unit)
        ),
        Evidence::OwnBytes { own } => {
            format!("{} are its own bytes; the rest is what the allocator keeps around them", per_unit(*own))
        }
        Evidence::HolderPath { holder, rate } => {
            format!("the same line grows `{holder}`: {}", per_unit(*rate))
        }
        Evidence::Census { first, last, in_bytes, boundaries, judgement } => {
            let (first, last) = (length(*first, *in_bytes), length(*last, *in_bytes));
            format!("{first} -> {last} over {boundaries} boundaries: {judgement}")
        }
        Evidence::ArmedTrace { gained, in_bytes, times } => {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("seen growing at this line {times} while traced (+{})", length(*gained, *in_bytes))
        }
        Evidence::GrowsInSource { .. }
        | Evidence::StoresInSource { .. }
        | Evidence::PatternAtLine
        | Evidence::PatternUnseen
        | Evidence::OnlyPlace { .. }
        | Evidence::Pattern { .. }
        | Evidence::Backward => in_source(evidence),
        Evidence::Contents(facts) => contents(facts),
        Evidence::Graph { nodes, saved_bytes, types, truncated } => {
            let least = at_least(*truncated);
            format!(
                "{least}{nodes} nodes, {} saved for backward ({})",
                Bytes(*saved_bytes),
                numbered(types.iter().map(|(name, count)| (name, u64::from(*count))))
            )
        }
        Evidence::PartOfArrays => {
            "tensors that show memory of arrays (`torch.from_numpy`) keep the whole of it, which they do not \
                                   tell: what nothing else accounts for"
                .to_owned()
        }
        Evidence::SampleOfMany { followed, rate } => format!(
            "{followed} containers of this attribute were followed, a part of them: the last ones grow by {}, and nothing else \
             accounts for the rest of the growth",
            per_unit(*rate)
        ),
        Evidence::HeapProfile { .. }
        | Evidence::MadeInLoop { .. }
        | Evidence::MadeByDrawing { .. }
        | Evidence::MadeByThreads { .. }
        | Evidence::RiseWithinEpoch { .. }
        | Evidence::GpuRecord { .. } => in_profile(evidence),
        Evidence::Garbage { .. } | Evidence::Cycle { .. } | Evidence::Collector { .. } => of_cycles(evidence),
        Evidence::Malloc { .. } | Evidence::Arenas { .. } | Evidence::Trimmed { .. } => {
            of_allocator(evidence)
        }
        Evidence::Workers { .. }
        | Evidence::Children { .. }
        | Evidence::Left { .. }
        | Evidence::PrivateMemory { .. }
        | Evidence::Pages { .. }
        | Evidence::Threads { .. }
        | Evidence::Files { .. } => of_processes(evidence),
        Evidence::Count { judgement } => judgement.clone(),
        Evidence::Profiler => {
            "torch's profiler was on to the last look, and no container accounts for the growth".to_owned()
        }
        Evidence::Gradients { stale, checked } => format!(
            "{stale} of {checked} backward passes after an optimizer step began with gradients other than zero"
        ),
        Evidence::Peak { bytes, file, line, function } => {
            format!("{} in use at {file}:{line} in `{function}`", Bytes(*bytes))
        }
    }
}

fn in_source(evidence: &Evidence) -> String {
    match evidence {
        Evidence::GrowsInSource { statement, container } => format!("`{statement}` grows `{container}`"),
        Evidence::StoresInSource { statement, container } => {
            format!("`{statement}` stores the new value in `{container}`")
        }
        Evidence::PatternAtLine => {
            "the source shows this pattern at the line that allocates what stays".to_owned()
        }
        Evidence::PatternUnseen => "the source shows this pattern; the run did not see it grow".to_owned(),
        Evidence::OnlyPlace { opens: true } => {
            "the one place in source that opens such; nobody watched the line itself".to_owned()
        }
        Evidence::OnlyPlace { opens: false } => {
            "the one place in source that does what was seen; nobody watched the line itself".to_owned()
        }
        Evidence::Pattern { class } => format!("{class}: {}", class.summary()),
        _ => "`create_graph=True` was given here; gradients and the graphs that made them hold each other, where the garbage \
              collector does not see it"
            .to_owned(),
    }
}

fn in_profile(evidence: &Evidence) -> String {
    match evidence {
        Evidence::HeapProfile { live_bytes, margin_bytes } => {
            let sampled = match margin_bytes {
                0 => String::new(),
                margin => format!(", give or take {} (sampled)", Bytes(*margin)),
            };
            format!("{} allocated by this line live at the last look{sampled}", Bytes(*live_bytes))
        }
        Evidence::MadeInLoop { rate } => format!(
            "what the loop around this line allocates and keeps grows by {} (sampled)",
            per_unit(*rate)
        ),
        Evidence::MadeByDrawing { rate } => format!(
            "what matplotlib allocates to draw and does not give back grows by {} (sampled)",
            per_unit(*rate)
        ),
        Evidence::MadeByThreads { rate } => {
            let (more, unit) = (Bytes(rate.bytes as u64), unit_name(rate.unit));
            format!("they hold what they allocate, {more} more per {unit}")
        }
        Evidence::RiseWithinEpoch { bytes } => {
            format!("what is allocated here rises by {} within an epoch (sampled)", Bytes(*bytes))
        }
        Evidence::GpuRecord { bytes, lines } => {
            let line = |made: &MadeAt| {
                let MadeAt { file, line, function, bytes } = made;
                format!("{} at {file}:{line} in `{function}`", Bytes(*bytes))
            };
            let lines: Vec<String> = lines.iter().map(line).collect();
            format!(
                "of {} that were made on the GPU while torch recorded and stayed: {}",
                Bytes(*bytes),
                lines.join(", ")
            )
        }
        _ => String::new(),
    }
}

fn of_cycles(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Garbage { objects, bytes, tensor_bytes, types, truncated } => {
            let about = if *truncated { "about " } else { "" };
            format!(
                "a collection at the end of the phase would have freed {about}{objects} objects and {}, {} of it in tensors and \
                 arrays ({}); nothing was collected to tell this",
                Bytes(*bytes),
                Bytes(*tensor_bytes),
                numbered(types.iter().map(|(name, count)| (name, *count)))
            )
        }
        Evidence::Cycle { attribute, owner_type, target_type } => {
            format!("`{attribute}` of {owner_type} is a {target_type} that leads back to it")
        }
        Evidence::Collector { frozen } => {
            format!("{frozen} objects are frozen (`gc.freeze()`): they are never looked at")
        }
        _ => String::new(),
    }
}

fn of_allocator(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Malloc { heap_bytes, free_bytes, top_bytes, threads } => format!(
            "of {} in malloc's heaps {} are free, and of these {} at the end of the heap, where they could be given back; \
             {threads} threads share the heaps",
            Bytes(*heap_bytes),
            Bytes(*free_bytes),
            Bytes(*top_bytes)
        ),
        Evidence::Arenas { arena_bytes, small_bytes, blocks } => format!(
            "pymalloc has mapped {} for small objects, and {blocks} of them take about {}: one that stays keeps the arena \
             around it",
            Bytes(*arena_bytes),
            Bytes(*small_bytes)
        ),
        Evidence::Trimmed { before_bytes, after_bytes, milliseconds } => format!(
            "`malloc_trim(0)` took resident memory from {} to {}, in {milliseconds:.0} ms",
            Bytes(*before_bytes),
            Bytes(*after_bytes)
        ),
        _ => String::new(),
    }
}

fn of_processes(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Workers { count, rate } => {
            format!("what follows is of one of {count} workers; together they grow by {}", per_unit(*rate))
        }
        Evidence::Children { bytes_each } => {
            format!("each holds {} of its own at the last reading, their median", Bytes(*bytes_each))
        }
        Evidence::Left { names, more: 0 } => names.join(", "),
        Evidence::Left { names, more } => format!("{} and {more} more", names.join(", ")),
        Evidence::PrivateMemory { workers, copied_bytes, rate, units, private_bytes } => {
            let unit = unit_name(rate.unit);
            let owner =
                if *workers == 1 { "the worker".to_owned() } else { format!("each of {workers} workers") };
            let turned = match copied_bytes {
                Some(copied) => format!("{} of what it shared have", Bytes(*copied)),
                None => format!("{} per {unit} of what it shared", Bytes(rate.bytes as u64)),
            };
            format!(
                "in {owner} {turned} turned its own, over {units:.0} {unit}s, {} by then; it holds nothing more",
                Bytes(*private_bytes)
            )
        }
        Evidence::Pages { copied, sampled } => {
            format!("{copied} of {sampled} elements looked at lie in pages that the worker has copied")
        }
        Evidence::Threads { kinds } => format!("of those more {}", of_kinds(kinds, "run")),
        Evidence::Files { kinds } => format!("of those more {}", of_kinds(kinds, "are")),
        _ => String::new(),
    }
}

fn of_kinds(kinds: &[KindCount], verb: &str) -> String {
    let text = |kind: &KindCount| {
        let KindCount { count, name, function, file, line } = kind;
        if name.is_empty() {
            format!("{count} {verb} `{function}` ({file}:{line})")
        } else {
            format!("{count} {verb} `{name}`")
        }
    };
    kinds.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn contents(facts: &ElementFacts) -> String {
    let (least, types) = (at_least(facts.truncated), facts.types.join(", "));
    let (mut text, whose) = match facts.sharing {
        Some(sampled) => {
            let all = Bytes(facts.bytes_per_element * u64::from(sampled));
            let text = format!("{sampled} elements of type {types} keep {least}{all} together");
            (text, "the graph that they share")
        }
        None => {
            (format!("{least}{} per element of type {types}", Bytes(facts.bytes_per_element)), "its graph")
        }
    };
    if facts.saved_bytes > 0 {
        _ = write!(text, ", of which {} are saved by {whose}", Bytes(facts.saved_bytes));
        if !facts.nodes.is_empty() {
            let nodes = facts.nodes.iter().map(|(name, count)| (name, u64::from(*count)));
            _ = write!(text, " ({})", numbered(nodes));
        }
    }
    if let Some([shown, held]) = facts.view {
        _ = write!(text, "; views of {} pin storages of {}", Bytes(shown), Bytes(held));
    }
    text
}

/// `96 AddBackward0, 4 MulBackward0`.
fn numbered<'a>(types: impl Iterator<Item = (&'a String, u64)>) -> String {
    types.map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

fn at_least(truncated: bool) -> &'static str {
    if truncated { "at least " } else { "" }
}

fn length(number: u64, in_bytes: bool) -> String {
    if in_bytes { Bytes(number).to_string() } else { number.to_string() }
}
