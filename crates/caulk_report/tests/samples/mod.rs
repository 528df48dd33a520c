//! Reports as real runs leave them, with fixed figures.

use caulk_core::{
    Applicability, Cause, Confidence, Death, Edit, Evidence, Fix, Growth, LeakClass, Left, Limit, LimitKind,
    Limits, MadeAt, Pinned, Place, Position, ProcessRef, Remedy, RunInfo, Scope, Series, Settled, Severity,
    Site, SiteRole, State, Target, Verdict, VerdictUnit,
};
use caulk_report::{Excerpts, Report, Summary};

const MB: f64 = 1024.0 * 1024.0;

/// Lines of a program that keeps graphs.
pub(crate) const SOURCE: [(u32, &str); 5] = [
    (77, "            with_loss = self.criterion(pred, target)"),
    (78, "            spatial_iou = self.iou(pred, target)"),
    (79, "            self.all_st_ious.append(spatial_iou)"),
    (80, "            self.log(spatial_iou)"),
    (91, "        self.all_ct_ious.append(center_iou)"),
];

/// The verdict on bytes in use of the training process, over eight epochs.
pub(crate) fn verdict(state: State) -> Verdict {
    let rate = if state == State::Grows { 16.5 * MB } else { 0.0 };
    Verdict {
        process: ProcessRef::main(),
        series: Series::InUse,
        state,
        unit: VerdictUnit::Epoch,
        bytes_per_unit: rate,
        bytes_per_epoch: Some(rate),
        interval: Some([rate - 0.6 * MB, rate + 0.7 * MB]),
        level: 0.95,
        boundaries: 7,
        warmup: 1,
        more_needed: None,
        last: 812.0 * MB,
        boundary_units: 1.0,
        unit_steps: Some(24.0),
        unit_seconds: Some(20.0),
        limit: None,
        oom_in_s: None,
        text: String::new(),
    }
}

/// Growth that meets a limit of the container.
pub(crate) fn growing() -> Verdict {
    Verdict {
        limit: Some(Limit { kind: LimitKind::Cgroup, bytes: 64 << 30 }),
        oom_in_s: Some([75_400.0, 81_800.0]),
        ..verdict(State::Grows)
    }
}

/// A cause with this message.
fn said(message: &str) -> Cause {
    Cause::Pattern { class: LeakClass::NativeGrowth, message: message.into(), rate: None }
}

/// A list of tensors with their graphs.
pub(crate) fn graph_in_list() -> Settled {
    let file = "leaky/main.py".to_owned();
    Settled {
        class: LeakClass::GraphKeptInContainer,
        confidence: Confidence::Proved,
        scope: Scope::Run,
        severity: Severity::Error,
        cause: said("`self.all_st_ious` stores tensors together with their autograd graphs"),
        sites: vec![Site {
            role: SiteRole::Grows,
            file: file.clone(),
            line: 79,
            end_line: 79,
            column: 13,
            function: "DetectionTrainer.validate".into(),
            text: "self.all_st_ious.append(spatial_iou)".into(),
            cell: None,
        }],
        container: "self.all_st_ious".into(),
        holder: "trainer.all_st_ious".into(),
        holder_path: ["module __main__", "function main() local trainer", "attribute all_st_ious", "list"]
            .map(str::to_owned)
            .to_vec(),
        chain: Vec::new(),
        process: ProcessRef::main(),
        growth: Some(Growth {
            unit: VerdictUnit::Epoch,
            series: Series::InUse,
            bytes_per_epoch: Some(16.5 * MB),
            bytes_per_unit: 16.5 * MB,
            in_use_per_unit: None,
            elements_per_epoch: Some(3.0),
            elements_per_unit: 3.0,
            interval: Some([16.0 * MB, 17.0 * MB]),
            elements: 24,
        }),
        pinned: Some(Pinned {
            graph_nodes: 96,
            saved_bytes: 132 << 20,
            touched_bytes: 132 << 20,
            node_bytes: 57_600,
            storages: 40,
            made_at: vec![MadeAt {
                file: "leaky/model.py".into(),
                line: 31,
                function: "Net.forward".into(),
                bytes: 120 << 20,
            }],
            ..Pinned::default()
        }),
        evidence: vec![
            Evidence::ArmedTrace { gained: 24, in_bytes: false, times: 24 },
            Evidence::GrowsInSource {
                statement: "self.all_st_ious.append(spatial_iou)".into(),
                container: "self.all_st_ious".into(),
            },
        ],
        remedy: Some(Remedy::from(Fix {
            applicability: Applicability::Unsafe,
            description: "keep the value without its graph".into(),
            edits: vec![Edit {
                file: file.clone(),
                start: Position { line: 79, column: 48 },
                end: Position { line: 79, column: 48 },
                content: ".detach()".into(),
            }],
        })),
        twins: vec![Place { file, line: 91, text: "self.all_ct_ious.append(center_iou)".into() }],
        more_twins: 0,
    }
}

/// A few bytes per epoch: worth knowing.
pub(crate) fn scalar_per_epoch() -> Settled {
    Settled {
        class: LeakClass::UnboundedHistory,
        confidence: Confidence::Likely,
        scope: Scope::Run,
        severity: Severity::Info,
        cause: said("`self.history` gets one number per epoch"),
        sites: vec![Site {
            line: 102,
            end_line: 102,
            text: "self.history.append(loss.item())".into(),
            function: "<module>".into(),
            ..graph_in_list().sites.remove(0)
        }],
        container: "self.history".into(),
        holder: "trainer.history".into(),
        remedy: Some(Remedy::from(Fix {
            applicability: Applicability::DisplayOnly,
            description: "nothing needs to change".into(),
            edits: Vec::new(),
        })),
        growth: None,
        pinned: None,
        evidence: Vec::new(),
        twins: Vec::new(),
        more_twins: 0,
        holder_path: Vec::new(),
        ..graph_in_list()
    }
}

/// A run of eight epochs that ended well.
pub(crate) fn run() -> Report {
    let mut excerpts = Excerpts::default();
    for (line, text) in SOURCE {
        excerpts.insert("leaky/main.py", line, text);
    }
    Report {
        command: "run".into(),
        info: RunInfo {
            schema: 1,
            caulk: "0.1.0".into(),
            id: "20261121-101500-main".into(),
            target: Target {
                command: vec!["python".into(), "leaky/main.py".into()],
                directory: "/work".into(),
                host: "host".into(),
                environment: Vec::new(),
            },
            started: "2026-11-21T10:15:00+01:00[Europe/Berlin]".into(),
            start_ns: 1_000_000_000,
            end_ns: Some(162_000_000_000),
            limits: Limits { physical_bytes: 128 << 30, ..Limits::default() },
            root_pid: 4242,
            supervisor_pid: 4241,
            death: Some(death(Some(0), None)),
            left: Left::default(),
            complete: true,
            notes: Vec::new(),
        },
        folder: ".caulk/runs/20261121-101500-main".into(),
        summary: Summary {
            epochs: Some(8),
            steps: Some(192),
            duration_s: 161.0,
            peak_bytes: Some(1_288_490_188),
            processes: 3,
            cost_s: Some(0.41),
            longest_pause_s: Some(0.031),
            in_use_at_end_bytes: Some(1_020_000_000),
        },
        excerpts,
        ..Report::default()
    }
}

/// An end by exit code or signal.
pub(crate) fn death(code: Option<i32>, signal: Option<i32>) -> Death {
    Death { code, signal, kill: None, text: String::new(), stopped: false }
}
