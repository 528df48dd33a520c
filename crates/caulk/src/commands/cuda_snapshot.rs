//! Snapshots of torch's allocator, for `caulk report --cuda-snapshot` and `caulk diff`.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context, bail, ensure};
use camino::Utf8Path;
use caulk_cuda::{Snapshot, SnapshotDifference, Usage, advise};
use caulk_report::{CudaSnapshotReport, TextOptions};

use crate::cli::{DiffArgs, DiffFormat, Format};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// The report on one snapshot.
///
/// # Errors
/// If the file cannot be read, or is no snapshot.
pub(crate) fn report(file: &Utf8Path, format: Format, options: &TextOptions) -> anyhow::Result<String> {
    let snapshot = read(file)?;
    let (devices, advice) = (Usage::of(&snapshot), advise(&snapshot));
    let report = CudaSnapshotReport { file: file.to_string(), settings: snapshot.settings, devices, advice };
    Ok(match format {
        Format::Text => caulk_report::cuda_snapshot_text(&report, options),
        Format::Json => caulk_report::cuda_snapshot_json(&report),
    })
}

/// Does an argument of `caulk diff` name a snapshot?
pub(crate) fn is_snapshot(name: &str) -> bool {
    Utf8Path::new(name).is_file()
}

/// What changed from one snapshot to the other.
///
/// # Errors
/// If a file cannot be read or is no snapshot, or an argument is for runs alone.
pub(crate) fn difference(args: &DiffArgs, options: &TextOptions) -> anyhow::Result<String> {
    ensure!(
        args.html.is_none() && args.fail_on.is_none() && args.format != DiffFormat::Markdown,
        "snapshots are compared as text and as JSON, without a limit\nhint: give `--format text` or `--format json`"
    );
    let [a, b] = [read(Utf8Path::new(&args.a))?, read(Utf8Path::new(&args.b))?];
    let difference = SnapshotDifference::of(&a, &b);
    Ok(match args.format {
        DiffFormat::Json => caulk_report::cuda_difference_json(&difference),
        _ => caulk_report::cuda_difference_text(&difference, options),
    })
}

fn read(file: &Utf8Path) -> anyhow::Result<Snapshot> {
    let failed = || format!("failed to read the snapshot `{file}`");
    let opened = File::open(file).with_context(failed)?;
    if !opened.metadata().with_context(failed)?.is_file() {
        bail!("`{file}` is no file that can be read as a snapshot");
    }
    Snapshot::read(BufReader::with_capacity(BUFFER, opened)).with_context(failed)
}
