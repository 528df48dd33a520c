//! The message of a finding, from its cause and facts.

use caulk_core::wire::ContainerKind;
use caulk_core::{
    Between, Bytes, Cause, Collector, Countable, Evidence, Finding, Grower, Grows, Rate, VerdictUnit, Why,
};

/// One sentence on what grows and why, without a period.
pub fn message(finding: &Finding) -> String {
    let text = of_cause(finding);
    match finding.evidence.first() {
        Some(Evidence::Workers { count, .. }) => {
            format!("in one of {count} workers that do so, {text}")
        }
        _ => text,
    }
}

fn of_cause(finding: &Finding) -> String {
    let summary = finding.class.summary();
    match &finding.cause {
        Cause::Class => String::new(),
        Cause::Grows(facts) => grows(facts),
        Cause::LikeSibling { container, rate } => {
            format!("`{container}` grows, {}: {summary}", per_unit(*rate))
        }
        Cause::NeverFreed(rate) => format!(
            "memory that is allocated here is never given back, {}, and no container was found that holds it",
            per_unit(*rate)
        ),
        Cause::Retained(rate) => format!(
            "memory that is allocated here stays, {}, and what holds it was not found",
            per_unit(*rate)
        ),
        Cause::Lengthened { target, rate } => {
            format!("`{target}` gets longer and longer, {}: {summary}", per_unit(*rate))
        }
        Cause::Stored { container, rate, made: None } => {
            format!("what is made here stays, {}: it is stored in `{container}` at once", per_unit(*rate))
        }
        Cause::Stored { container, rate, made: Some(line) } => {
            format!("`{container}` keeps what line {line} makes, {}", per_unit(*rate))
        }
        Cause::Pattern { message, rate, .. } => match rate {
            Some(rate) => format!("{message}; {} of what is allocated here stay", per_unit(*rate)),
            None => message.clone(),
        },
        Cause::MayExplain { message, .. } => {
            format!("nothing that was looked at explains the growth; this line may: {message}")
        }
        Cause::Cycles { rate, collector, .. } => format!(
            "{} are held by objects that refer to each other and wait for the collector, {}",
            per_unit(*rate),
            why_not_collected(*collector)
        ),
        Cause::Waiting { bytes, .. } => format!(
            "up to {} wait for the collector at the ends of phases, in objects that refer to each other: without the cycle they \
             would be free at once",
            Bytes(*bytes)
        ),
        Cause::RecordedBackward { rate, call } => format!(
            "memory grows by {} that no container holds, and `{call}` records its own graph: {summary}",
            per_unit(*rate)
        ),
        Cause::Profiler(rate) => format!("{} of events: {summary}", per_unit(*rate)),
        Cause::GpuPieces { .. } | Cause::PinnedPool { .. } => kept_for_gpus(&finding.cause),
        Cause::KeptPages { .. }
        | Cause::Counts { .. }
        | Cause::Segments { .. }
        | Cause::ProcessesLeft { .. }
        | Cause::SegmentsLeft { .. }
        | Cause::Copied { .. } => of_process(&finding.cause, summary),
        Cause::Peak { .. }
        | Cause::Gathered { .. }
        | Cause::StaleGradients
        | Cause::Exhausted { .. }
        | Cause::RetainedOnGpu(_) => of_run(&finding.cause),
    }
}

/// What torch's allocators keep for GPUs.
fn kept_for_gpus(cause: &Cause) -> String {
    let size = |bytes: u64| Bytes(bytes).to_string();
    match cause {
        Cause::GpuPieces {
            failed: Some(asked), allocated_bytes, reserved_bytes, largest_free_bytes, ..
        } => {
            let free = size(reserved_bytes.saturating_sub(*allocated_bytes));
            let largest = largest_free_bytes
                .map_or_else(String::new, |bytes| format!(", the largest of {}", size(bytes)));
            format!(
                "an allocation of {} on the GPU failed though torch had {free} free of {} reserved: they lie in pieces{largest}",
                size(*asked),
                size(*reserved_bytes)
            )
        }
        Cause::GpuPieces {
            allocated_bytes,
            reserved_bytes,
            gaps_bytes,
            largest_free_bytes,
            largest_used_bytes,
            rate,
            ..
        } => {
            let share = *gaps_bytes as f64 / (*reserved_bytes).max(1) as f64 * 100.0;
            let more = rate.map_or_else(String::new, |rate| format!(", {}", per_unit(rate)));
            let blocks =
                largest_free_bytes.zip(*largest_used_bytes).map_or_else(String::new, |(free, used)| {
                    format!("; the largest free block has {}, the largest tensor {}", size(free), size(used))
                });
            format!(
                "torch has reserved {} on the GPU for {} of tensors{more}: {} ({share:.0} %) lie in gaps between tensors{blocks}",
                size(*reserved_bytes),
                size(*allocated_bytes),
                size(*gaps_bytes)
            )
        }
        Cause::PinnedPool { rate, pool_bytes, used_bytes } => format!(
            "torch's pool of pinned host memory grows, {}, to {} with {} in use: it keeps blocks of sizes that do not come \
             back",
            per_unit(*rate),
            size(*pool_bytes),
            size(*used_bytes)
        ),
        _ => String::new(),
    }
}

fn grows(facts: &Grows) -> String {
    let unit = unit_name(facts.rate.unit);
    let container = match facts.container.as_str() {
        "" => "a container held from C".to_owned(),
        container => format!("`{container}`"),
    };
    let container = match facts.others {
        0 => container,
        others => format!("{container} (in {} places)", others + 1),
    };
    let count = |noun: &str| format!("{} per {unit}", counted(facts.elements, noun));
    let what = match facts.grower {
        Grower::Kind(ContainerKind::Graph) => {
            format!("the autograd graph behind {container} grows by {}", count("node"))
        }
        Grower::Kind(ContainerKind::Tensor) => {
            format!("{container} is replaced by a larger one again and again")
        }
        Grower::Kind(ContainerKind::Buffer) => format!("{container} gets longer and longer"),
        Grower::Kind(ContainerKind::LruCache) => {
            format!("the cache of {container} grows by {}", count("result"))
        }
        Grower::Kind(ContainerKind::Chain) => {
            let link = facts.link.as_ref().map_or_else(String::new, |link| format!(" through `{link}`"));
            format!("{container} is the end of a chain{link} that grows by {}", count("object"))
        }
        Grower::Drawn => format!("{container} adds {} to what is drawn", count("element")),
        Grower::AtExit => format!("what is to run at exit grows by {}", count("function")),
        Grower::Kind(_) => format!("{container} grows by {}", count("element")),
    };
    format!("{what}, {}: {}", per_unit(facts.rate), why(facts))
}

fn why(facts: &Grows) -> String {
    match facts.why {
        Why::Class => facts.class.summary().to_owned(),
        Why::MoreParameters => {
            "an optimizer is given other parameters, and keeps its state for each that it ever had".to_owned()
        }
        Why::MoreFigures => "figures are drawn and kept".to_owned(),
        Why::Lags => {
            "`itertools.tee` keeps what another iterator has read until this one has read it".to_owned()
        }
        Why::MoreArtists => "what was drawn on the same Axes before stays, and is drawn again".to_owned(),
        Why::Fills { most, bytes } => {
            let bytes = bytes.map_or_else(String::new, |bytes| format!(" and keeps {}", Bytes(bytes)));
            format!("it fills up, and is full when it has {most}{bytes}")
        }
    }
}

fn why_not_collected(collector: Collector) -> String {
    match collector {
        Collector::Off => "which is switched off".to_owned(),
        Collector::Seldom(threshold) => {
            format!("which was told to come seldom (`gc.set_threshold({threshold}, ...)`)")
        }
        Collector::CountsObjects => {
            "which counts objects, not bytes: old ones are looked at when a quarter more of them have been made"
                .to_owned()
        }
    }
}

/// `+10.0 MB per epoch`.
pub(crate) fn per_unit(rate: Rate) -> String {
    format!("{} per {}", Bytes::signed(rate.bytes), unit_name(rate.unit))
}

/// The unit of a rate, as a noun.
pub(crate) fn unit_name(unit: VerdictUnit) -> &'static str {
    match unit {
        VerdictUnit::Epoch => "epoch",
        VerdictUnit::Steps => "step",
        VerdictUnit::Seconds => "second",
    }
}

fn counted_as(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `1 element`, `2.5 elements`, `0.02 elements`, with as many digits as the number means.
fn counted(number: f64, noun: &str) -> String {
    let whole = number >= 10.0 || (number - number.round()).abs() < 0.05;
    let digits = match number {
        0.001..0.05 => (-number.log10()).ceil() as usize,
        _ => usize::from(!whole),
    };
    let plural = if (number - 1.0).abs() < 0.05 { "" } else { "s" };
    format!("{number:.digits$} {noun}{plural}")
}

/// Causes around a process: pages, things that are counted, shared memory.
fn of_process(cause: &Cause, summary: &str) -> String {
    match cause {
        Cause::KeptPages { allocator, rate, free_of, between } => {
            let share = free_of.map_or_else(String::new, |[free, has]| {
                format!(" ({} of {} at the last look)", Bytes(free), Bytes(has))
            });
            let why = match between {
                Between::Container(container) => format!("what `{container}` keeps lies in between"),
                Between::Blocks => "what stays lies in between".to_owned(),
                Between::Class => summary.to_owned(),
            };
            let (bytes, unit) = (Bytes(rate.bytes as u64), unit_name(rate.unit));
            format!("{allocator} keeps {bytes} more per {unit} that the program has freed{share}: {why}")
        }
        Cause::Counts { counted, per_unit, unit, last } => {
            let noun = match counted {
                Countable::Children | Countable::LoaderWorkers => "child processes",
                Countable::Files => "open file descriptors",
                Countable::Threads => "threads",
            };
            let unit = unit_name(*unit);
            format!("{per_unit:.1} more {noun} per {unit}, {last:.0} at the last look: {summary}")
        }
        Cause::Segments { rate, last } => format!(
            "{} more of shared memory per {} that nobody unlinks, {} at the last look: {summary}",
            Bytes(rate.bytes as u64),
            unit_name(rate.unit),
            Bytes(*last)
        ),
        Cause::ProcessesLeft { count, bytes } => {
            let what = counted_as(*count, "process lives", "processes live");
            format!("{what} on after the program has ended, with {} resident", Bytes(*bytes))
        }
        Cause::SegmentsLeft { count, bytes } => {
            let what = counted_as(*count, "segment", "segments");
            format!("{what} of shared memory, {} in all, stayed when the program had ended", Bytes(*bytes))
        }
        Cause::Copied { container, ended, workers, rate } => {
            let what = match container {
                Some((name, len)) => {
                    format!("`{name}` ({len} elements) is copied by the workers that read it")
                }
                None => "what the workers share with the main process is copied as they read it".into(),
            };
            let much = match ended {
                Some(copied) if *workers == 1 => format!("{} by now", Bytes(*copied)),
                Some(copied) => format!("{} in each of {workers} by now", Bytes(*copied)),
                None => per_unit(*rate),
            };
            format!("{what}, {much}: {summary}")
        }
        _ => String::new(),
    }
}

/// Causes that a phase or the end of the run shows.
fn of_run(cause: &Cause) -> String {
    match cause {
        Cause::Peak { container, held, elements, high, base, function } => format!(
            "`{container}` holds {} in {elements} elements when memory is highest ({}, {} at the boundary): it is freed when \
             `{function}` returns, but every entry keeps its autograd graph until then",
            Bytes(*held),
            Bytes(*high),
            Bytes(*base)
        ),
        Cause::Gathered { holder, per_step, rise } => {
            let what = if holder.is_empty() { "what is made here".to_owned() } else { format!("`{holder}`") };
            format!(
                "{what} stays until the epoch ends, {} a step: {} in each epoch, more in longer ones",
                Bytes::signed(*per_step),
                Bytes(*rise)
            )
        }
        Cause::StaleGradients => {
            "every backward pass adds to the gradients of the steps before, because nothing clears them: a \
                                  training error; memory does not grow"
                .to_owned()
        }
        Cause::Exhausted { bytes, whole, stored } => {
            let stored = stored.as_ref().map_or_else(String::new, |kept| format!(" and stored in `{kept}`"));
            format!(
                "memory ran out, and {} of the {} that were in use at the last look had been allocated here{stored}",
                Bytes(*bytes),
                Bytes(*whole)
            )
        }
        Cause::RetainedOnGpu(rate) => format!(
            "memory on the GPU that is allocated here stays, {}, and nothing was found that holds it",
            per_unit(*rate)
        ),
        _ => String::new(),
    }
}
