//! `caulk runs`: what was recorded so far.

use std::fs;

use anyhow::Context;
use caulk_core::{Bytes, shown_name};
use caulk_record::RunEntry;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::KEPT_REPORT;
use crate::brief::{brief, clip, joined};
use crate::cli::{Format, RunsArgs};
use crate::places::Places;
use crate::printer::{self, Printer};
use crate::{assemble, exit, lives};

/// One line of the list.
#[derive(Debug, Default)]
struct Line {
    id: String,
    folder: String,
    started: String,
    command: String,
    /// The command as the table has room for it: its program without folders.
    brief: String,
    duration_s: Option<f64>,
    ending: String,
    verdict: String,
    bytes: u64,
    problem: Option<String>,
}

/// Lists the runs that were recorded from here.
///
/// # Errors
/// If there is none because a folder with runs cannot be read, or the list cannot be written.
pub(crate) fn run(args: &RunsArgs, printer: Printer) -> anyhow::Result<i32> {
    let places = Places::here();
    places.warn(printer);
    let (runs, unreadable) = places.runs();
    for error in unreadable {
        if runs.is_empty() {
            return Err(error.into());
        }
        printer.warn_of(&error.into(), None);
    }
    let lines: Vec<Line> = runs.iter().map(line).collect();
    let text = match args.format {
        Format::Json => document(&lines),
        Format::Text if lines.is_empty() => {
            let home = &places.home;
            printer.say(&format!("no runs in `{home}`; record one with `caulk run -- COMMAND`\n"));
            return Ok(exit::SUCCESS);
        }
        Format::Text => table(&lines, printer::data_options().width),
    };
    printer::data(&text).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

fn line(entry: &RunEntry) -> Line {
    let (id, folder) = (entry.id().into(), entry.folder.to_string());
    let mut line = Line { id, folder, bytes: entry.bytes, ..Line::default() };
    let info = match &entry.info {
        Ok(info) => info,
        Err(error) => {
            line.ending = "broken".into();
            line.problem = error.to_string().lines().next().map(str::to_owned);
            return line;
        }
    };
    if info.target.command.is_empty() {
        line.ending = "broken".into();
        line.problem = Some("its `run.json` cannot be read".into());
        return line;
    }
    // A command that was started again has ended as it did the last time.
    let last = lives::last(&entry.folder);
    let end = last.as_ref().unwrap_or(info);
    let running = assemble::runs(end);
    line.command = joined(&info.target.command);
    line.brief = brief(&info.target.command);
    line.started.clone_from(&info.started);
    line.ending = caulk_report::ending(end, running);
    line.duration_s = end.end_ns.map(|end_ns| end_ns.saturating_sub(info.start_ns) as f64 / 1e9);
    if running && line.duration_s.is_none() {
        let started = info.started.parse::<Timestamp>().ok();
        line.duration_s = started.map(|started| started.duration_until(Timestamp::now()).as_secs_f64());
    }
    line.verdict = verdict(entry).unwrap_or_default();
    line
}

/// The verdict of the report that was made when the run ended; judging every run again would take minutes.
fn verdict(entry: &RunEntry) -> Option<String> {
    let kept: Value = serde_json::from_slice(&fs::read(entry.folder.join(KEPT_REPORT)).ok()?).ok()?;
    let brief = kept["outlook"]["brief"].as_str()?.to_owned();
    let found =
        kept["findings"].as_array().into_iter().flatten().find(|finding| finding["severity"] != "info");
    let site = found.and_then(|finding| {
        let site = finding["sites"].get(0)?;
        Some(format!("{}:{}", shown_name(site["file"].as_str()?), site["line"].as_u64()?))
    });
    Some(site.map_or(brief.clone(), |site| format!("{brief}, {site}")))
}

fn document(lines: &[Line]) -> String {
    let runs: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!({
                "id": line.id,
                "folder": line.folder,
                "started": line.started,
                "command": line.command,
                "duration_s": line.duration_s,
                "ending": line.ending,
                "verdict": line.verdict,
                "bytes": line.bytes,
                "problem": line.problem,
            })
        })
        .collect();
    let document = json!({ "schema": caulk_report::SCHEMA, "runs": runs });
    format!("{document:#}\n")
}

/// The list in columns as wide as they need to be; the command, which can be any length, comes last.
fn table(lines: &[Line], width: usize) -> String {
    let head = ["RUN", "DURATION", "ENDED", "MEMORY", "SIZE"].map(str::to_owned);
    let rows: Vec<[String; 5]> = lines
        .iter()
        .map(|line| {
            let duration = line.duration_s.map_or_else(|| "-".into(), caulk_report::seconds);
            let verdict = if line.verdict.is_empty() { "-".into() } else { line.verdict.clone() };
            [line.id.clone(), duration, line.ending.clone(), verdict, Bytes(line.bytes).to_string()]
        })
        .collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let commands = ["COMMAND".to_owned()].into_iter();
    let commands =
        commands.chain(lines.iter().map(|line| line.problem.clone().unwrap_or_else(|| line.brief.clone())));
    let mut out = String::new();
    for (row, command) in [&head].into_iter().chain(&rows).zip(commands) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let start: Vec<String> = cells.collect();
        let start = start.join("  ");
        let room = width.saturating_sub(start.chars().count() + 2).max(20);
        out.push_str(format!("{start}  {}", clip(&command, room)).trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_needed_and_commands_are_cut() {
        let run = |id: &str, ending: &str, command: &[String]| Line {
            id: id.into(),
            ending: ending.into(),
            brief: brief(&[&["/opt/venv/bin/python".to_owned()], command].concat()),
            duration_s: Some(161.0),
            verdict: "steady".into(),
            bytes: 2048,
            ..Line::default()
        };
        let lines = [
            run(
                "20261121-101500-train",
                "exit 0",
                &["train.py", "--with-very-long-arguments", "and-more\nlines"].map(str::to_owned),
            ),
            Line {
                id: "b".into(),
                ending: "broken".into(),
                problem: Some("no head".into()),
                ..Line::default()
            },
        ];
        insta::assert_snapshot!(table(&lines, 100), @r"
        RUN                    DURATION    ENDED   MEMORY  SIZE     COMMAND
        20261121-101500-train  2 min 41 s  exit 0  steady  2.00 KB  python train.py --with-very-long-argume…
        b                      -           broken  -       0 B      no head
        ");
    }
}
