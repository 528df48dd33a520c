//! An allocation that a GPU had no memory for, in words.

use caulk_core::{Bytes, GpuRefused, GpuShortage};

use crate::words;

/// What torch had, why that was not enough, and what kept it: sentences.
pub(crate) fn details(gpu: &GpuRefused) -> String {
    let had = format!(
        "Torch had {} in tensors and {} reserved on GPU {}.",
        Bytes(gpu.allocated_bytes),
        Bytes(gpu.reserved_bytes),
        gpu.device
    );
    let sentences = [Some(had), Some(words::sentence_case(&why(gpu))), kept(gpu)];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The limit that was in the way.
pub(crate) fn why(gpu: &GpuRefused) -> String {
    let total = Bytes(gpu.total_bytes);
    match gpu.shortage {
        GpuShortage::Fragmentation => {
            let free = Bytes(gpu.reserved_bytes.saturating_sub(gpu.allocated_bytes));
            let largest = gpu
                .largest_free_bytes
                .map_or_else(String::new, |bytes| format!(", the largest has {}", Bytes(bytes)));
            format!("{free} of that was free, but in pieces{largest}")
        }
        GpuShortage::Fraction => {
            "the limit was the program's own share of the GPU (`set_per_process_memory_fraction`)".to_owned()
        }
        GpuShortage::OtherProcesses => {
            let others = Bytes(gpu.others_bytes.unwrap_or(0));
            format!("other processes had {others} of the GPU's {total}")
        }
        GpuShortage::OutsideTorch => {
            let taken = gpu.total_bytes.saturating_sub(gpu.free_bytes).saturating_sub(gpu.reserved_bytes);
            format!(
                "{} of the GPU's {total} was taken outside torch's allocator, in this process or in others",
                Bytes(taken)
            )
        }
        GpuShortage::Device if gpu.total_bytes == 0 => "the GPU was full".to_owned(),
        GpuShortage::Device => format!("the GPU has {total}"),
    }
}

/// What kept most.
fn kept(gpu: &GpuRefused) -> Option<String> {
    let holders = gpu.holders.iter().map(|holder| {
        let place = if holder.file.is_empty() {
            String::new()
        } else {
            format!(" ({}:{})", holder.file, holder.line)
        };
        format!("`{}`{place} kept {}", holder.name, Bytes(holder.bytes))
    });
    let holders: Vec<String> = holders.collect();
    (!holders.is_empty()).then(|| format!("{}.", holders.join(", ")))
}

/// ` at train.py:12`.
pub(crate) fn place(gpu: &GpuRefused) -> String {
    if gpu.file.is_empty() { String::new() } else { format!(" at {}:{}", gpu.file, gpu.line) }
}
