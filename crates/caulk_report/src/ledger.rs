//! Where a run's memory on a device is, in words.

use caulk_core::{Bytes, GpuLedger};

/// `this run has 2.10 GB: 1.07 GB tensors, 200 MB free in torch, 300 MB context, 530 MB outside torch`. Parts of less than a
/// megabyte are left out.
pub fn ledger_text(ledger: &GpuLedger) -> String {
    let parts = [
        (ledger.torch_live, "tensors"),
        (ledger.torch_free, "free in torch"),
        (ledger.torch_gaps, "gaps between tensors"),
        (ledger.graph_pools, "pools of captured graphs"),
        (ledger.context, "context"),
        (ledger.rest, "outside torch since the training began"),
    ];
    let shown = parts.iter().filter(|(bytes, _)| *bytes >= Bytes::MB);
    let shown: Vec<String> = shown.map(|(bytes, name)| format!("{} {name}", Bytes(*bytes))).collect();
    format!("this run has {}: {}", Bytes(ledger.used), shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_matter_are_named() {
        let ledger = GpuLedger {
            used: 1600 * Bytes::MB,
            context: 500 * Bytes::MB,
            torch_live: 1000 * Bytes::MB,
            rest: 100 * Bytes::MB,
            torch_gaps: 512,
            ..GpuLedger::default()
        };
        let text = "this run has 1.56 GB: 1000 MB tensors, 500 MB context, 100 MB outside torch since the training began";
        assert_eq!(ledger_text(&ledger), text);
    }
}
