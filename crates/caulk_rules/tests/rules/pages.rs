//! Pages as tests: a rule reports at the marked lines of its page and nowhere else in it.
//!
//! Other rules may have something to say about a page's programs; where a page marks their names too, they must.

use std::collections::BTreeSet;

use caulk_core::{LeakClass, Severity};
use caulk_python::{Analysis, Project};
use caulk_rules::{RULES, Rule, check};

use crate::page::{Mark, Page, Program, SECTIONS};

#[test]
fn rules_are_in_order_of_their_names() {
    let names: Vec<_> = RULES.iter().map(|rule| rule.class.as_str()).collect();
    assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn every_page_is_complete() {
    let problems: Vec<_> = RULES.iter().flat_map(|rule| incomplete(rule)).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

fn incomplete(rule: &Rule) -> Vec<String> {
    let page = Page::parse(rule.explanation);
    let mut problems = Vec::new();
    if page.title != rule.class.as_str() {
        problems.push(format!("its title is `{}`", page.title));
    }
    if page.sections != SECTIONS {
        problems.push(format!("its sections are {:?}, and should be {SECTIONS:?}", page.sections));
    }
    for section in ["Example", "Use instead", "Cases"] {
        if !page.programs.iter().any(|program| program.section == section) {
            problems.push(format!("no program under `{section}`"));
        }
    }
    problems.iter().map(|problem| format!("page of `{}`: {problem}", rule.class)).collect()
}

#[test]
fn every_rule_does_what_its_page_says() {
    let wrong: Vec<_> = RULES.iter().flat_map(|rule| differences(rule)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn differences(rule: &Rule) -> Vec<String> {
    let page = Page::parse(rule.explanation);
    let mut wrong: Vec<_> = page.programs.iter().flat_map(|program| compare(rule, program)).collect();
    if !page.programs.iter().any(|program| program.section == "Example" && marked(program, rule.class)) {
        wrong.push("no line of the example is marked".to_owned());
    }
    wrong.iter().map(|wrong| format!("page of `{}`, {wrong}", rule.class)).collect()
}

fn marked(program: &Program, class: LeakClass) -> bool {
    program.marks().iter().any(|mark| mark.class == class)
}

fn compare(rule: &Rule, program: &Program) -> Vec<String> {
    let analysis = Analysis::new(Project::new(program.sources()));
    let mut wrong: Vec<_> = analysis
        .problems()
        .iter()
        .map(|problem| format!("`{}`: {}", program.section, problem.message))
        .collect();
    let marks: BTreeSet<_> = program.marks().into_iter().collect();
    if program.section == "Use instead" && marked(program, rule.class) {
        wrong.push("`Use instead` has a marked line".to_owned());
    }
    let classes: BTreeSet<_> = marks.iter().map(|mark| mark.class).chain([rule.class]).collect();
    let rules: Vec<_> = RULES.iter().copied().filter(|rule| classes.contains(&rule.class)).collect();
    let mut reported = BTreeSet::new();
    for diagnostic in check(&analysis, &rules) {
        let site = diagnostic.sites.first().expect("a diagnostic has a site");
        let (line, section) = (program.line(&site.file, site.line), &program.section);
        let mark = marks.iter().find(|mark| (mark.line, mark.class) == (line, diagnostic.class));
        let said = &diagnostic.message;
        match mark {
            Some(mark) if mark.advice && diagnostic.severity != Severity::Info => {
                wrong.push(format!("line {line} (`{section}`): must be advice, but is more: {said}"));
            }
            None if diagnostic.class == rule.class => {
                wrong.push(format!("line {line} (`{section}`): must stay silent, but: {said}"));
            }
            Some(_) if diagnostic.fix.is_none() => {
                wrong.push(format!("line {line} (`{section}`): no change is said: {said}"));
            }
            _ => {}
        }
        reported.extend(mark);
    }
    for Mark { line, class, .. } in marks.iter().filter(|mark| !reported.contains(mark)) {
        wrong.push(format!("line {line} (`{}`): nothing is reported for `{class}`", program.section));
    }
    wrong
}
