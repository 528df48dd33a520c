//! Did you mean ...?

/// The candidate that a misspelt name is most likely to mean.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let allowed = (name.chars().count() / 3).max(1);
    let scored = candidates.into_iter().map(|candidate| (distance(&name, candidate), candidate));
    let best = scored.filter(|(distance, _)| *distance <= allowed).min_by_key(|(distance, _)| *distance);
    best.map(|(_, candidate)| candidate)
}

/// Levenshtein: characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(nearest(name, ["cached-method", "figure-not-closed", "select"]), expected);
    }

    #[test]
    fn typing_errors_are_understood() {
        check("cached-metod", Some("cached-method"));
        check("cached_method", Some("cached-method"));
        check("figures-not-closed", Some("figure-not-closed"));
        check("selct", Some("select"));
        check("E501", None);
        check("", None);
    }
}
