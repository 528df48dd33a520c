//! The figures as families of metrics, in the text format `OpenMetrics`.
//!
//! Names and attributes are those of the semantic conventions of OpenTelemetry, written as Prometheus writes them:
//! `process.memory.usage` in `By` becomes `process_memory_usage_bytes`. What the conventions lack begins with `caulk_`.

use std::fmt;
use std::sync::Arc;

use caulk_core::GpuSample;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::figures::{Figures, Process};
use super::shared::Shared;

/// Labels and value of one series.
type Series = (Vec<(&'static str, String)>, f64);

/// The figures as they are now.
///
/// # Errors
/// Never: the text is in memory.
pub(super) fn text(shared: &Arc<Shared>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(Arc::clone(shared))));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Families(Arc<Shared>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        // A copy, so that the supervisor never waits for a request.
        let figures = self.0.figures().clone();
        let run = vec![label("caulk_run", &self.0.run), label("caulk_version", &self.0.version)];
        let mut family = Writer(&mut encoder);
        family.gauge("caulk_run_info", "Name of the run", None, &[(run, 1.0)])?;
        processes(&mut family, &figures)?;
        surroundings(&mut family, &figures)?;
        gpus(&mut family, &figures)
    }
}

struct Writer<'a, 'e>(&'a mut DescriptorEncoder<'e>);

impl Writer<'_, '_> {
    /// A family of gauges; nothing if it has no series.
    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, series: &[Series]) -> fmt::Result {
        if series.is_empty() {
            return Ok(());
        }
        let mut metric = self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        if let [(labels, value)] = series
            && labels.is_empty()
        {
            return ConstGauge::new(*value).encode(metric);
        }
        series
            .iter()
            .try_for_each(|(labels, value)| ConstGauge::new(*value).encode(metric.encode_family(labels)?))
    }

    /// A family of counters; nothing if it has no series.
    fn counter(&mut self, name: &str, help: &str, series: &[Series]) -> fmt::Result {
        if series.is_empty() {
            return Ok(());
        }
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        series
            .iter()
            .try_for_each(|(labels, value)| ConstCounter::new(*value).encode(metric.encode_family(labels)?))
    }
}

fn processes(family: &mut Writer<'_, '_>, figures: &Figures) -> fmt::Result {
    let each = |value: &dyn Fn(&Process) -> Option<f64>| -> Vec<Series> {
        let series = |process: &Process| Some((of_process(process), value(process)?));
        figures.processes.values().filter_map(series).collect()
    };
    let size = |bytes: u64| Some(bytes as f64);
    let bytes = Some(&Unit::Bytes);
    let all = each(&|process| size(process.sample.rss_bytes));
    family.gauge("process_memory_usage", "Resident memory of a process", bytes, &all)?;
    let limited = each(&|process| process.sample.address_space_bytes.and_then(size));
    family.gauge(
        "process_memory_virtual",
        "Address space of a process that has a limit on it",
        bytes,
        &limited,
    )?;
    let threads = each(&|process| process.sample.threads.map(f64::from));
    family.gauge("process_thread_count", "Threads of a process", None, &threads)?;
    let files = each(&|process| process.sample.fds.map(f64::from));
    family.gauge("process_unix_file_descriptor_count", "Open file descriptors of a process", None, &files)?;
    let in_use = each(&|process| process.sample.counted.and_then(|counted| size(counted.bytes())));
    let help = "Bytes that the allocators of a process have handed out and not got back";
    family.gauge("caulk_memory_in_use", help, bytes, &in_use)?;
    let pss = each(&|process| process.sample.pss_bytes.and_then(size));
    family.gauge(
        "caulk_memory_pss",
        "Proportional set size of a process, if it was just read",
        bytes,
        &pss,
    )?;
    let epochs = each(&|process| (process.inside.epochs > 0).then_some(process.inside.epochs as f64));
    family.counter("caulk_epochs", "Epochs that have ended", &epochs)?;
    let steps = each(&|process| (process.inside.steps > 0).then_some(process.inside.steps as f64));
    family.counter("caulk_steps", "Steps of the optimizer", &steps)?;
    for (at, name, help) in [
        (0, "caulk_torch_memory_allocated", "GPU memory that torch has handed out"),
        (1, "caulk_torch_memory_reserved", "GPU memory that torch has taken from the devices"),
    ] {
        let torch = each(&|process| process.inside.torch_bytes.and_then(|both| size(both[at])));
        family.gauge(name, help, bytes, &torch)?;
    }
    Ok(())
}

fn surroundings(family: &mut Writer<'_, '_>, figures: &Figures) -> fmt::Result {
    let bytes = Some(&Unit::Bytes);
    let one = |value: Option<u64>| -> Vec<Series> {
        value.map(|value| (Vec::new(), value as f64)).into_iter().collect()
    };
    if let Some(system) = &figures.system {
        let help = "Resident memory of all processes of the command";
        family.gauge("caulk_tree_memory_usage", help, bytes, &one(Some(system.tree_rss_bytes)))?;
        family.gauge(
            "caulk_processes",
            "Processes of the command",
            None,
            &one(Some(system.processes.into())),
        )?;
        let help = "Memory of the machine that is available";
        family.gauge("caulk_memory_available", help, bytes, &one(Some(system.available_bytes)))?;
        let help = "Memory of the control group that limits the command";
        family.gauge("caulk_cgroup_memory_usage", help, bytes, &one(system.cgroup_bytes))?;
    }
    let limits = &figures.limits;
    let physical = Some(limits.physical_bytes).filter(|bytes| *bytes > 0);
    let kinds = [("physical", physical), ("cgroup", limits.cgroup_bytes), ("budget", figures.budget)];
    let limit = |(kind, bytes): (&str, Option<u64>)| Some((vec![label("caulk_limit", kind)], bytes? as f64));
    let limits: Vec<Series> = kinds.into_iter().filter_map(limit).collect();
    family.gauge("caulk_memory_limit", "Memory that the command may reach", bytes, &limits)
}

fn gpus(family: &mut Writer<'_, '_>, figures: &Figures) -> fmt::Result {
    let each = |value: &dyn Fn(&GpuSample) -> Option<f64>| -> Vec<Series> {
        figures.devices.values().filter_map(|gpu| Some((of_device(gpu), value(gpu)?))).collect()
    };
    let bytes = Some(&Unit::Bytes);
    let ratio = Unit::Other("ratio".into());
    let used = each(&|gpu| Some(gpu.used_bytes as f64));
    family.gauge("hw_gpu_memory_usage", "Memory of a GPU that is taken, by anybody", bytes, &used)?;
    let limit = each(&|gpu| gpu.total_bytes.map(|total| total as f64));
    family.gauge("hw_gpu_memory_limit", "Memory of a GPU", bytes, &limit)?;
    let share = each(&|gpu| {
        gpu.total_bytes.filter(|total| *total > 0).map(|total| gpu.used_bytes as f64 / total as f64)
    });
    family.gauge(
        "hw_gpu_memory_utilization",
        "Part of a GPU's memory that is taken",
        Some(&ratio),
        &share,
    )?;
    let busy = each(&|gpu| gpu.busy_percent.map(|percent| f64::from(percent) / 100.0));
    family.gauge(
        "hw_gpu_utilization",
        "Part of the time in which something ran on a GPU",
        Some(&ratio),
        &busy,
    )?;
    let celsius = each(&|gpu| gpu.celsius.map(f64::from));
    family.gauge("hw_temperature", "Temperature of a GPU", Some(&Unit::Celsius), &celsius)?;
    let part = |gpu: &GpuSample| {
        let process = figures.processes.get(&gpu.pid?);
        let pid = label("process_pid", gpu.pid?.to_string());
        let mut labels = process.map_or_else(|| vec![pid], of_process);
        labels.push(label("hw_id", gpu.device.to_string()));
        Some((labels, gpu.used_bytes as f64))
    };
    let parts: Vec<Series> = figures.parts.values().filter_map(part).collect();
    family.gauge(
        "caulk_gpu_process_memory_usage",
        "Memory of a GPU that a process of the command has",
        bytes,
        &parts,
    )
}

fn of_process(process: &Process) -> Vec<(&'static str, String)> {
    let record = &process.record;
    vec![
        label("process_pid", process.sample.pid.to_string()),
        label("process_executable_name", &record.name),
        label("caulk_role", record.role.as_str()),
        label("caulk_index", record.index.to_string()),
    ]
}

fn of_device(gpu: &GpuSample) -> Vec<(&'static str, String)> {
    vec![label("hw_id", gpu.device.to_string()), label("hw_name", &gpu.name), label("hw_type", "gpu")]
}

/// The encoder writes values as they are.
fn label(name: &'static str, value: impl AsRef<str>) -> (&'static str, String) {
    let mut escaped = String::new();
    for c in value.as_ref().chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            c if c.is_control() => escaped.push('\u{FFFD}'),
            c => escaped.push(c),
        }
    }
    (name, escaped)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use caulk_core::{ProcessRecord, Sample, SystemSample};

    use super::*;

    fn written(figures: Figures) -> String {
        text(&Arc::new(Shared::new("a \"run\"\n", "1", figures))).unwrap()
    }

    #[test]
    fn names_are_those_of_the_conventions_and_values_are_escaped() {
        let mut figures = Figures::default();
        figures.sample(&Sample { pid: 7, time_ns: 1, rss_bytes: 1 << 40, ..Sample::default() });
        figures.process(&ProcessRecord {
            pid: 7,
            name: "py\"\\\nx\u{1b}".into(),
            ..ProcessRecord::default()
        });
        figures.system(&SystemSample {
            time_ns: 1,
            tree_rss_bytes: 9,
            processes: 1,
            ..SystemSample::default()
        });
        let gpu = |pid| GpuSample {
            pid,
            used_bytes: 3,
            total_bytes: Some(6),
            name: "H".into(),
            ..GpuSample::default()
        };
        figures.gpu(&gpu(Some(7)));
        figures.gpu(&gpu(None));
        let text = written(figures);
        let process = "process_pid=\"7\",process_executable_name=\"py\\\"\\\\\\nx\u{FFFD}\",caulk_role=\"main\",\
                       caulk_index=\"0\"";
        for line in [
            "caulk_run_info{caulk_run=\"a \\\"run\\\"\\n\",caulk_version=\"1\"} 1.0",
            "# UNIT process_memory_usage_bytes bytes",
            &format!("process_memory_usage_bytes{{{process}}} 1099511627776.0"),
            "caulk_tree_memory_usage_bytes 9.0",
            "hw_gpu_memory_usage_bytes{hw_id=\"0\",hw_name=\"H\",hw_type=\"gpu\"} 3.0",
            "hw_gpu_memory_utilization_ratio{hw_id=\"0\",hw_name=\"H\",hw_type=\"gpu\"} 0.5",
            &format!("caulk_gpu_process_memory_usage_bytes{{{process},hw_id=\"0\"}} 3.0"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
        // A family without a series is left out.
        assert!(!text.contains("process_thread_count"), "{text}");
    }

    #[test]
    fn before_the_first_sample_there_is_the_name_of_the_run() {
        assert!(written(Figures::default()).contains("caulk_run_info{"));
    }
}
