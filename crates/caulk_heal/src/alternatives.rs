//! Edits to try for a finding besides its own fix.

use caulk_check::Texts;
use caulk_core::{Applicability, Finding, Fix, Group, LeakClass};
use caulk_python::{Analysis, EditTry, Project, SourceFile, TryKind};

/// Edits at the lines of a finding, in an order that its class suggests. If other places have the same pattern, the same kind of
/// edit is made there, too.
pub(crate) fn alternatives(finding: &Finding, texts: &Texts) -> Vec<Fix> {
    let mut found: Vec<EditTry> = Vec::new();
    for site in &finding.sites {
        let Some(text) = texts.get(&site.file) else { continue };
        let project = Project::new([SourceFile { path: site.file.clone(), text: text.clone() }]);
        let Some(file) = project.ids().next() else { continue };
        let analysis = Analysis::new(project);
        let lines = analysis.lines(file);
        let mut tries = lines.tries(site.line, &site.function);
        let twins = finding.twins.iter().filter(|twin| twin.file == site.file);
        let others: Vec<Vec<EditTry>> =
            twins.map(|twin| lines.tries(twin.line, &lines.function_at(twin.line))).collect();
        let together: Vec<EditTry> =
            tries.iter().filter_map(|one| with_twins(&tries, one, &others)).collect();
        tries.splice(0..0, together);
        found.extend(tries);
    }
    let graphs = finding.pinned.as_ref().is_some_and(|pinned| pinned.graph_nodes > 0);
    found.retain(|one| graphs || finding.class.group() == Group::Graph || !is_about_graphs(one));
    found.retain(|one| is_about_views(finding.class) || !copies(one));
    found.sort_by_key(|one| order(finding.class.group()).iter().position(|kind| *kind == one.kind));
    let fix = |one: EditTry| Fix {
        applicability: Applicability::Unsafe,
        description: one.description,
        edits: one.edits,
    };
    found.into_iter().map(fix).collect()
}

/// An edit with the ones at other places that come at the same position of their kind.
fn with_twins(tries: &[EditTry], one: &EditTry, others: &[Vec<EditTry>]) -> Option<EditTry> {
    let of_kind = |tries: &[EditTry]| -> Vec<EditTry> {
        tries.iter().filter(|other| other.kind == one.kind).cloned().collect()
    };
    let at = of_kind(tries).iter().position(|other| other == one)?;
    let mut all = one.clone();
    for twin in others.iter().filter_map(|other| of_kind(other).get(at).cloned()) {
        let new: Vec<_> = twin.edits.into_iter().filter(|edit| !all.edits.contains(edit)).collect();
        all.edits.extend(new);
    }
    (all.edits.len() > one.edits.len()).then_some(all)
}

/// Whether an edit takes away graphs and nothing else.
fn is_about_graphs(one: &EditTry) -> bool {
    let ends = |content: &str| content.ends_with(".detach()") || content.contains("no_grad()");
    one.kind == TryKind::Value && one.edits.iter().any(|edit| ends(edit.content.trim_end()))
}

/// Whether copies help against it.
fn is_about_views(class: LeakClass) -> bool {
    class == LeakClass::ViewPinsStorage || class.group() == Group::Graph
}

fn copies(one: &EditTry) -> bool {
    let ends = |content: &str| content.ends_with(".clone()") || content.ends_with(".copy()");
    one.kind == TryKind::Value && one.edits.iter().any(|edit| ends(&edit.content))
}

/// Kinds of edits, the most promising first.
fn order(group: Group) -> [TryKind; 4] {
    match group {
        Group::Graph => [TryKind::Value, TryKind::Clear, TryKind::Bound, TryKind::Release],
        Group::Reference | Group::Figure | Group::Resource => {
            [TryKind::Release, TryKind::Bound, TryKind::Clear, TryKind::Value]
        }
        _ => [TryKind::Bound, TryKind::Clear, TryKind::Value, TryKind::Release],
    }
}

#[cfg(test)]
mod tests {
    use caulk_core::{Settled, Site, SiteRole};

    use super::*;

    const METER: &str = "\
class Meter:
    def __init__(self, window=20):
        self.window = window
        self.values = []

    def add(self, value):
        self.values.append(value)

    def mean(self):
        return sum(self.values[-self.window :])


meter = Meter()
for epoch in range(9):
    meter.add(epoch)
    print(meter.mean())
";

    /// The sources with each alternative for a finding at a line.
    fn edited(class: LeakClass, text: &str, line: u32, function: &str) -> Vec<String> {
        let texts = Texts::from([("m.py".to_owned(), text.to_owned())]);
        let site = Site {
            role: SiteRole::Grows,
            file: "m.py".into(),
            line,
            end_line: line,
            column: 1,
            function: function.into(),
            text: String::new(),
            cell: None,
        };
        let finding = Finding::new(Settled { sites: vec![site], ..Settled::of(class) });
        let apply = |fix: &Fix| {
            let edits: Vec<_> = fix.edits.iter().collect();
            caulk_check::edited(&texts, &edits).map(|mut changed| changed.remove("m.py").unwrap_or_default())
        };
        alternatives(&finding, &texts).iter().filter_map(apply).collect()
    }

    #[test]
    fn a_history_is_cut_to_the_length_that_is_read_or_emptied_where_a_loop_ends() {
        let all = edited(LeakClass::UnboundedHistory, METER, 7, "Meter.add");
        let cut = "        self.values.append(value)\n        del self.values[:-self.window]\n";
        let emptied = "    print(meter.mean())\n    meter.values.clear()\n";
        assert!(all[0].contains(cut), "{}", all[0]);
        assert!(all.iter().any(|text| text.contains(emptied)), "{all:#?}");
        assert!(!all.iter().any(|text| text.contains(".append(value.detach())")));
    }

    #[test]
    fn what_is_read_from_the_end_alone_is_cut_there() {
        let text =
            "rows = []\nfor epoch in range(9):\n    rows.append(epoch)\n    print(rows[-1], rows[-2])\n";
        let all = edited(LeakClass::GlobalAccumulation, text, 3, "<module>");
        assert!(all[0].contains("    rows.append(epoch)\n    del rows[:-2]\n"), "{all:#?}");
    }

    #[test]
    fn a_container_is_emptied_once_another_function_has_used_it() {
        let text = "class Net:\n    def step(self, loss):\n        self.outs.append({'loss': loss})\n\n    \
                    def end(self):\n        return sum(self.outs)\n";
        let all = edited(LeakClass::StepOutputsNotCleared, text, 3, "Net.step");
        let emptied = "        result = sum(self.outs)\n        self.outs.clear()\n        return result\n";
        assert!(all.iter().any(|text| text.contains(emptied)), "{all:#?}");
        let all = edited(LeakClass::GraphKeptInContainer, text, 3, "Net.step");
        assert!(all[0].contains("{'loss': loss.detach()}"), "{all:#?}");
    }

    #[test]
    fn graphs_go_first_where_graphs_are_kept() {
        let all = edited(LeakClass::GraphKeptInContainer, METER, 7, "Meter.add");
        assert!(all[0].contains("value.detach()"), "{}", all[0]);
        assert!(all.iter().any(|text| text.contains("float(value)")));
    }

    #[test]
    fn a_hook_is_removed_and_a_file_closed_where_the_loop_ends() {
        let hook = "for epoch in range(9):\n    model.register_forward_hook(print)\n    train(model)\n";
        let all = edited(LeakClass::HookNeverRemoved, hook, 2, "<module>");
        let expected =
            "    handle = model.register_forward_hook(print)\n    train(model)\n    handle.remove()\n";
        assert!(all.iter().any(|text| text.contains(expected)), "{all:#?}");
        let file = "def save(at):\n    log = open(at)\n    logs.append(log)\n    return at\n";
        let all = edited(LeakClass::HookNeverRemoved, file, 2, "save");
        assert!(all.iter().any(|text| text.contains("    log.close()\n    return at\n")), "{all:#?}");
    }
}
