//! Names that are like one that is not known.

/// Names that are told at most.
const MOST: usize = 5;

/// The names most like this one: those that contain it or are contained, and those a few letters away.
pub(crate) fn names<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = letters(wanted);
    let far = |name: &str| {
        let name = letters(name);
        let within = !wanted.is_empty() && (name.contains(&wanted) || wanted.contains(&name));
        if within { 0 } else { distance(&wanted, &name) }
    };
    let mut near: Vec<(usize, &str)> = known.map(|name| (far(name), name)).collect();
    near.retain(|(far, _)| *far <= (wanted.chars().count() / 3).max(1));
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
}

/// A sentence with the names that are near, or with all where none is.
pub(crate) fn hint(near: &[String], all: &[&str]) -> String {
    let quoted =
        |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if near.is_empty() {
        format!("known are {}", quoted(all.to_vec()))
    } else {
        format!("did you mean {}?", quoted(near.iter().map(String::as_str).collect()))
    }
}

/// Letters and digits alone.
pub(crate) fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Edits from one to the other; two letters in the wrong order are one (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, edits) | (edits, 0) => edits,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let edits = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if swapped { edits.min(table[i - 2][j - 2] + 1) } else { edits }
                }
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, first: Option<&str>) {
        let known = ["GTX 1650", "GTX 1660 Ti", "RTX 3090", "A100 80GB"];
        assert_eq!(names(wanted, known.into_iter()).first().map(String::as_str), first, "{wanted}");
    }

    #[test]
    fn slips_and_parts_of_names() {
        check("GTX1560", Some("GTX 1650"));
        check("1660", Some("GTX 1660 Ti"));
        check("rtx 3091", Some("RTX 3090"));
        check("zebra", None);
        check("", None);
    }
}
