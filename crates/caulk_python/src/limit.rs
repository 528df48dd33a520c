//! The number that a container's length is held at, as far as the file tells it.

use std::collections::HashSet;

use crate::lines::Lines;

/// The number that a limit stands for: a literal, or a name that is bound to one somewhere in the file (a constant, an
/// attribute, a default or an argument by keyword, by way of other names), the greatest of these.
pub(crate) fn number(file: &Lines<'_>, limit: &str) -> Option<u64> {
    let mut open = vec![limit.trim().to_owned()];
    let mut met = HashSet::new();
    let mut most = None;
    while let Some(value) = open.pop() {
        if let Some(number) = literal(&value) {
            most = most.max(Some(number));
            continue;
        }
        let name = value.rsplit('.').next().filter(|name| is_name(name)).map(str::to_owned);
        let Some(name) = name.filter(|name| met.insert(name.clone())) else { continue };
        open.extend(bound_to(file, &name));
    }
    most
}

/// The number that a condition compares the length of `name` with, where it holds only for containers that are longer.
pub(crate) fn compared(file: &Lines<'_>, name: &str, condition: &str) -> Option<u64> {
    let (measured, limit, rest) = parts(condition)?;
    if measured.rsplit('.').next() != Some(name) {
        return None;
    }
    // What else is asked for may never come.
    let alone = rest.trim_matches([' ', ')']).is_empty() && condition.trim_start().starts_with("len(");
    // Nor may what comes after other tests.
    let lines = (1..).map_while(|line| file.line(line).map(str::trim_start));
    let after_others =
        lines.filter_map(|line| line.strip_prefix("elif ")).any(|test| test.starts_with(condition));
    number(file, limit).filter(|_| alone && !after_others)
}

/// The number of elements that a statement leaves at most: `del rows[:-self.room]`, `rows = rows[-self.room:]`.
pub(crate) fn left(file: &Lines<'_>, statement: &str) -> Option<u64> {
    let statement = statement.trim();
    let limit = match statement.strip_prefix("del ") {
        Some(part) => part.split_once("[:-")?.1.strip_suffix(']')?,
        None => statement.split_once('=')?.1.split_once("[-")?.1.strip_suffix(":]")?,
    };
    number(file, limit)
}

/// The name of the number that a condition compares a length with: `room` of `len(self.rows) > self.room`.
pub fn limit_name(condition: &str) -> Option<&str> {
    let (_, limit, _) = parts(condition)?;
    limit.rsplit('.').next().filter(|name| is_name(name) && literal(name).is_none())
}

/// What is measured, what its length is compared with, and the rest of the condition.
fn parts(condition: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = condition.split_once("len(")?;
    let (measured, rest) = rest.split_once(')')?;
    // Equal is enough where it grows by one at a time.
    let rest = rest.trim_start();
    let limit = rest.strip_prefix('>').or_else(|| rest.strip_prefix("=="))?;
    let limit = limit.strip_prefix('=').unwrap_or(limit).trim();
    let end = limit.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(limit.len());
    Some((measured, &limit[..end], &limit[end..]))
}

impl Lines<'_> {
    /// The greatest number that a call in the file gives by this keyword.
    pub fn given_as(&self, keyword: &str) -> Option<u64> {
        let arguments = self.index.calls.iter().flat_map(|call| &call.arguments);
        let given = arguments.filter(|argument| argument.name.as_deref() == Some(keyword));
        given.filter_map(|argument| number(self, &argument.value.text)).max()
    }
}

fn literal(text: &str) -> Option<u64> {
    let digits = text.chars().filter(|c| *c != '_').collect::<String>();
    digits.parse().ok()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// What a name is bound to in the file: by an assignment to a variable or attribute, as a default, as an argument.
fn bound_to(file: &Lines<'_>, name: &str) -> Vec<String> {
    let index = file.index;
    let assigned = index.assignments.iter().filter(|bound| bound.target.last_name() == Some(name));
    let parameters = index.scopes.iter().flat_map(|scope| &scope.parameters);
    let defaults = parameters.filter(|parameter| parameter.name == name);
    let ranges = assigned
        .filter_map(|bound| bound.value)
        .chain(defaults.filter_map(|parameter| parameter.default_range));
    let given = index.calls.iter().flat_map(|call| &call.arguments);
    let given = given.filter(|argument| argument.name.as_deref() == Some(name));
    let given = given.map(|argument| argument.value.text.clone());
    ranges.map(|range| file.source.inline(range)).chain(given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::project::{Project, SourceFile};

    fn compared_in(source: &str, condition: &str) -> Option<u64> {
        let file = SourceFile { path: "m.py".into(), text: source.into() };
        let analysis = Analysis::new(Project::new([file]));
        let id = analysis.project().find("m.py")?;
        compared(&analysis.lines(id), "rows", condition)
    }

    fn check(condition: &str, most: Option<u64>) {
        let source = "LIMIT = 4_096\nSCALE = 3 * LIMIT\ndef make(self, room: int = 10, *, unknown):\n    self.most = room\n\
             make(room=30)\na = b\nb = a\n";
        assert_eq!(compared_in(source, condition), most, "{condition}");
    }

    #[test]
    fn a_limit_is_given_by_keyword() {
        let source = "ROOM = 70\nmake(room=30)\nmake(room=ROOM, other=900)\nmake(room=unknown())\n";
        let analysis = Analysis::new(Project::new([SourceFile { path: "m.py".into(), text: source.into() }]));
        let id = analysis.project().find("m.py").expect("it is there");
        let given = |condition: &str| analysis.lines(id).given_as(limit_name(condition)?);
        assert_eq!(given("len(self.rows) > self.room"), Some(70));
        assert_eq!(given("len(rows) == other"), Some(900));
        assert_eq!(given("len(rows) > 900"), None);
        assert_eq!(given("len(rows) > absent"), None);
    }

    #[test]
    fn limits_of_a_length_are_found() {
        check("len(self.rows) > 900", Some(900));
        check("len(rows) >= LIMIT", Some(4096));
        check("len(self.rows) > self.room", Some(30));
        check("len(self.rows) > self.most", Some(30));
        check("len(rows) == LIMIT", Some(4096));
        check("len(rows) > a", None);
        check("len(self.others) > 900", None);
        check("len(rows) < 900", None);
        check("len(rows) > unknown", None);
        check("len(rows) > SCALE", None);
        check("len(rows) > 900 and full", None);
        check("full and len(rows) > 900", None);
        check("rows", None);
        let source = "if a: pass\nelif len(rows) > 9: rows.pop(0)\n";
        assert_eq!(compared_in(source, "len(rows) > 9"), None);
    }
}
