//! Why nothing is reported at a line, in words: what grows there, and what keeps it from being a leak.

use crate::analysis::Analysis;
use crate::flow::event::{Event, Guards, LoopKind, Release, Root, What};
use crate::flow::ids::{ActivationId, ObjectId};
use crate::flow::lifetime::Duration;
use crate::flow::value::{Kinds, Value};
use crate::project::Location;

impl Analysis {
    /// Why nothing is reported at a line: what the analysis knows of it, one reason each.
    pub fn silence(&self, path: &str, line: u32) -> Vec<String> {
        let Some(file) = self.project.find(path) else {
            return vec![format!("{path} is not a part of what was looked at")];
        };
        let mut reasons = Vec::new();
        for (id, _, event) in self.events() {
            if event.statement.file != file || !self.covers(event.statement, line) {
                continue;
            }
            match event.what {
                What::Grow { object, value, .. } => {
                    let value = *self.ran().run.values.get(value);
                    self.growth_silence(&mut reasons, id, event, object, &value);
                }
                What::Bind { value, .. } => {
                    let value = self.ran().run.values.get(value);
                    if !value.carries_graph() && value.kinds.has(Kinds::TENSOR) {
                        reasons.push("the tensor that is bound here carries no autograd graph".to_owned());
                    }
                }
                What::Reset { .. } => {
                    reasons.push("what is bound here does not come from what was there before".to_owned());
                }
                _ => {}
            }
        }
        reasons.sort();
        reasons.dedup();
        reasons
    }

    fn covers(&self, statement: Location, line: u32) -> bool {
        let (first, last) = self.project.lines(statement);
        // Of a compound statement, only its header.
        line == first || line > first && line <= last && last - first < 12
    }

    fn growth_silence(
        &self,
        reasons: &mut Vec<String>,
        id: ActivationId,
        event: &Event,
        object: ObjectId,
        value: &Value,
    ) {
        let container = self.project.text(event.at);
        let contents = self.contents(value);
        if self.object(object).bounded {
            reasons.push(format!("`{container}` has a largest size"));
        }
        if contents.graph.is_none() && contents.kinds.has(Kinds::TENSOR) {
            reasons.push(format!("what goes into `{container}` carries no autograd graph here"));
        }
        if contents.is_plain() {
            reasons.push(format!("only numbers and text go into `{container}`"));
        }
        if contents.kinds.has(Kinds::UNKNOWN) {
            reasons.push(format!("nothing is known of what goes into `{container}`"));
        }
        for duration in self.ran().lifetimes.of_container(&self.ran().run, id, event, object) {
            reasons.extend(self.duration_silence(container, object, &duration));
        }
    }

    fn duration_silence(&self, container: &str, object: ObjectId, duration: &Duration) -> Option<String> {
        if duration.root == Root::Test {
            return Some("it is a test".to_owned());
        }
        if let Some(release) = duration.released_by {
            let releases = self.releases(object);
            let released = releases.get(release)?;
            let event =
                &self.ran().run.activations[released.activation.0 as usize].events[released.event as usize];
            let how = match released.how {
                Release::Clear => "emptied",
                Release::Remove => "relieved of an element",
                Release::Trim => "cut to a part of itself",
                Release::Rebind => "replaced",
            };
            let (line, _) = self.project.lines(event.statement);
            let condition = if released.guards.has(Guards::LENGTH) { ", when it gets too long" } else { "" };
            return Some(format!(
                "`{container}` is {how} at {}:{line}{condition}",
                self.project.file(event.statement.file).path()
            ));
        }
        if duration.growing.is_empty() {
            return Some(format!("`{container}` is made anew in the same loop, or grows outside of loops"));
        }
        if !duration.growing.iter().any(|id| self.repeats(*id)) {
            let few = duration
                .growing
                .iter()
                .all(|id| matches!(self.a_loop(*id).kind, LoopKind::Times(_) | LoopKind::Parts));
            return Some(if few {
                format!("`{container}` grows in loops over a handful of things only")
            } else {
                format!("nothing says that the loops around `{container}` train, evaluate or go on for ever")
            });
        }
        None
    }
}
