//! `caulk diff`: two recorded runs, or two folders of repeats, side by side.

use std::path::Path;

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{LineUse, Series, Verdict};
use caulk_diff::{ContainerGrowth, Difference, LineGrowth, Quantity, RunFacts, diff};
use caulk_html::Curve;
use caulk_report::{TextOptions, outlook};

use super::cuda_snapshot;
use crate::cli::{DiffArgs, DiffFormat};
use crate::places::Places;
use crate::printer::{self, Printer};
use crate::{assemble, course, exit, files};

const FAILED: &str = "failed to write to standard output";
/// Deviations on either side of an estimate that make an interval of 95 %.
const NORMAL_95: f64 = 1.96;

/// Shows the comparison.
///
/// # Errors
/// If there is no such run, or the runs cannot be compared.
pub(crate) fn run(args: &DiffArgs, printer: Printer) -> anyhow::Result<i32> {
    if cuda_snapshot::is_snapshot(&args.a) && cuda_snapshot::is_snapshot(&args.b) {
        print(args, &cuda_snapshot::difference(args, &options(args))?)?;
        return Ok(exit::SUCCESS);
    }
    let places = Places::here();
    places.warn(printer);
    if let Some(path) = &args.html {
        files::check(path)?;
    }
    let folders = [folders(&places, &args.a)?, folders(&places, &args.b)?];
    let [a, b] = [side(&folders[0])?, side(&folders[1])?];
    let difference = diff(&a, &b).context("the runs cannot be compared")?;
    if let Some(limit) = args.fail_on
        && limit.unit != difference.unit
    {
        bail!(
            "--fail-on is per {}, and the runs are judged per {}",
            limit.unit,
            if difference.unit.is_empty() { "nothing" } else { difference.unit }
        );
    }
    deliver(args, &difference, &folders)?;
    let fails = args.fail_on.is_some_and(|limit| difference.grows_faster_by(limit.bytes));
    Ok(if fails { exit::FOUND } else { exit::SUCCESS })
}

fn deliver(args: &DiffArgs, difference: &Difference, folders: &[Vec<Utf8PathBuf>; 2]) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        files::write(path, caulk_report::difference_html(difference, courses(folders)))?;
        return printer::data(format!("{path}\n")).context(FAILED);
    }
    let text = match args.format {
        DiffFormat::Text => caulk_report::difference_text(difference, &options(args)),
        DiffFormat::Json => caulk_report::difference_json(difference),
        DiffFormat::Markdown => caulk_report::difference_markdown(difference),
    };
    print(args, &text)
}

fn options(args: &DiffArgs) -> TextOptions {
    if args.output.is_some() { printer::file_options() } else { printer::data_options() }
}

fn print(args: &DiffArgs, text: &str) -> anyhow::Result<()> {
    match &args.output {
        Some(path) => Ok(files::write(path, text)?),
        None => printer::data(text).context(FAILED),
    }
}

/// Memory in use over time, in the first run of each side.
fn courses(folders: &[Vec<Utf8PathBuf>; 2]) -> Vec<Curve> {
    let course = |(letter, runs): (&str, &Vec<Utf8PathBuf>)| {
        let run = runs.first()?;
        let readings = course::in_use(&caulk_record::read(run).ok()?);
        let name = format!("{letter}: {}", run.file_name().unwrap_or("run"));
        Some(Curve { name, readings: readings.into_iter().map(|bytes| bytes as f64).collect() })
    };
    ["A", "B"].into_iter().zip(folders).filter_map(course).collect()
}

/// The run of a name, or the runs in a folder of that name that is no run itself.
fn folders(places: &Places, name: &str) -> anyhow::Result<Vec<Utf8PathBuf>> {
    let folder = Utf8Path::new(name);
    if folder.is_dir() && !is_run(folder) {
        let entries = folder.read_dir_utf8().with_context(|| format!("failed to read `{folder}`"))?;
        let mut runs: Vec<Utf8PathBuf> =
            entries.flatten().map(camino::Utf8DirEntry::into_path).filter(|path| is_run(path)).collect();
        runs.sort();
        if runs.is_empty() {
            bail!("there is no recording in `{folder}`");
        }
        return Ok(runs);
    }
    Ok(vec![places.resolve(name)?])
}

fn side(runs: &[Utf8PathBuf]) -> anyhow::Result<Vec<RunFacts>> {
    runs.iter().map(|run| facts(run)).collect()
}

fn is_run(folder: &Utf8Path) -> bool {
    folder.join("run.json").is_file()
}

fn facts(folder: &Utf8Path) -> anyhow::Result<RunFacts> {
    let recording = caulk_record::read(folder)?;
    let host_peak = caulk_verify::host_peak(&recording).map(|bytes| bytes as f64);
    let lines = assemble::lines(folder, None)?.rows;
    let report = assemble::judged(&recording, Some(folder));
    let gpu = report.verdicts.iter().find(|verdict| {
        verdict.series == Series::CudaAllocated && matches!(verdict.process.role.as_str(), "main" | "rank")
    });
    Ok(RunFacts {
        name: folder.file_name().unwrap_or("run").to_owned(),
        program: program(&report.info.target.command),
        version: report.info.caulk.clone(),
        memory: outlook(&report.verdicts)
            .verdict()
            .map(|verdict| (verdict.state, verdict.series, verdict.unit, slope(verdict))),
        gpu: gpu.map(slope),
        host_peak,
        gpu_peak: report.gpus.iter().map(|gpu| gpu.peak_bytes as f64).reduce(f64::max),
        seconds_per_step: outlook(&report.verdicts).verdict().and_then(seconds_per_step),
        containers: report.findings.iter().filter_map(container).collect(),
        lines: lines.iter().map(line).collect(),
    })
}

fn slope(verdict: &Verdict) -> Quantity {
    Quantity { value: verdict.bytes_per_unit, interval: verdict.interval }
}

fn seconds_per_step(verdict: &Verdict) -> Option<f64> {
    let seconds = verdict.unit_seconds?;
    Some(seconds / verdict.unit_steps.filter(|steps| *steps > 0.0).unwrap_or(1.0))
}

/// A container of a finding that grows by bytes.
fn container(finding: &caulk_core::Finding) -> Option<ContainerGrowth> {
    let holder = if finding.holder.is_empty() { &finding.container } else { &finding.holder };
    let growth = finding.growth.as_ref().filter(|_| !holder.is_empty())?;
    let rate = Quantity { value: growth.bytes_per_unit, interval: growth.interval };
    Some(ContainerGrowth { holder: holder.clone(), rate })
}

fn line(row: &LineUse) -> LineGrowth {
    let held = if row.ended { row.peak } else { row.live };
    let margin = NORMAL_95 * held.deviation;
    let live = Quantity { value: held.bytes, interval: Some([held.bytes - margin, held.bytes + margin]) };
    LineGrowth { file: row.file.clone(), line: row.line, function: row.function.clone(), live }
}

/// The file name of the script, or what runs in place of one: two checkouts have one program in two folders.
fn program(command: &[String]) -> String {
    let script = command.iter().map(Path::new).find(|word| word.extension().is_some_and(|kind| kind == "py"));
    let module = command.iter().position(|word| word == "-m").and_then(|at| command.get(at + 1));
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    match (script, module) {
        (Some(script), _) => name(script),
        (None, Some(module)) => module.clone(),
        (None, None) => command.first().map(|word| name(Path::new(word))).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str], expected: &str) {
        let command: Vec<String> = command.iter().map(ToString::to_string).collect();
        assert_eq!(program(&command), expected);
    }

    #[test]
    fn a_program_is_its_script() {
        check(&["/a/python", "-u", "/x/train.py", "--epochs", "3"], "train.py");
        check(&["python", "-m", "pkg.train"], "pkg.train");
        check(&["/bin/serve", "x"], "serve");
        check(&[], "");
    }
}
