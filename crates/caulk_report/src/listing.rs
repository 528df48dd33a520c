//! The findings of a run as a list of places, for the formats that services read.

use std::path::Path;

use caulk_core::{Diagnostic, Finding, Problem, Proof, Site, SiteRole};

use crate::advice::fix;
use crate::chain::chain;
use crate::check::CheckReport;
use crate::message::message;
use crate::{Excerpts, Report};

/// The findings of a run with one place each. A finding without a line stands at the first line of the command's script.
pub(crate) fn listing(report: &Report) -> CheckReport {
    let script = script(&report.info.target.command);
    let problem = |text: &String| Problem::of_file(script, text.clone());
    CheckReport {
        findings: report.findings.iter().map(|finding| diagnostic(finding, script)).collect(),
        problems: report.problems.iter().map(problem).collect(),
        excerpts: report.excerpts.clone(),
        ..CheckReport::default()
    }
}

/// The same without source, edits and excerpts.
pub(crate) fn listing_without_source(report: &Report) -> CheckReport {
    let mut listing = listing(report);
    for diagnostic in &mut listing.findings {
        diagnostic.sites.iter_mut().for_each(|site| site.text.clear());
        diagnostic.chain.clear();
        diagnostic.twins.clear();
        if let Some(fix) = &mut diagnostic.fix {
            fix.edits.clear();
        }
    }
    CheckReport { excerpts: Excerpts::default(), ..listing }
}

fn diagnostic(finding: &Finding, script: &str) -> Diagnostic {
    let mut sites = finding.sites.clone();
    if sites.is_empty() {
        sites.push(first_line(script));
    }
    Diagnostic {
        class: finding.class,
        confidence: finding.confidence,
        scope: finding.scope,
        severity: finding.severity,
        // A run has seen it.
        proof: Proof::FULL,
        message: message(finding),
        sites,
        container: finding.container.clone(),
        chain: chain(finding),
        fix: fix(finding),
        twins: finding.twins.clone(),
        more_twins: finding.more_twins,
    }
}

fn first_line(script: &str) -> Site {
    Site {
        role: SiteRole::Allocates,
        file: script.to_owned(),
        line: 1,
        end_line: 1,
        column: 1,
        function: "<module>".into(),
        text: String::new(),
        cell: None,
    }
}

/// The script that a command runs: its first Python file before `-m` and `-c`, or else the program itself.
fn script(command: &[String]) -> &str {
    let words = command.iter().map(String::as_str);
    let mut before = words.take_while(|word| !matches!(*word, "-m" | "-c"));
    let script = before.find(|word| is_script(word));
    script.or(command.first().map(String::as_str)).unwrap_or("python")
}

fn is_script(word: &str) -> bool {
    !word.starts_with('-') && Path::new(word).extension().is_some_and(|extension| extension == "py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_a_command() {
        let of = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            script(&words).to_owned()
        };
        assert_eq!(of("python -u train.py --data x.py"), "train.py");
        assert_eq!(of("torchrun --nproc_per_node=2 src/train.py"), "src/train.py");
        assert_eq!(of("python -m package.train x.py"), "python");
        assert_eq!(of("./train.sh"), "./train.sh");
    }
}
