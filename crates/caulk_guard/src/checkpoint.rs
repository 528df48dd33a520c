//! Which checkpoint the next life begins with.

/// A file or folder that may be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Where it lies.
    pub path: String,
    /// Last change, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// Nothing is missing in it, as far as can be told from outside.
    pub complete: bool,
}

/// The newest complete one, or the newest older than `before`; equally old ones by name.
pub fn choose<'a>(found: &'a [Checkpoint], before: Option<&Checkpoint>) -> Option<&'a Checkpoint> {
    let is_older = |one: &&Checkpoint| before.is_none_or(|before| order(one) < order(before));
    found.iter().filter(|one| one.complete).filter(is_older).max_by_key(|one| order(one))
}

/// By age, then by name with numbers in it compared as numbers.
fn order(one: &Checkpoint) -> (u64, Vec<(u64, String)>) {
    let mut parts = Vec::new();
    let mut rest = one.path.as_str();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((number.parse().unwrap_or(0), text.to_owned()));
        rest = tail;
    }
    (one.modified_ns, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &str, modified_ns: u64, complete: bool) -> Checkpoint {
        Checkpoint { path: path.into(), modified_ns, complete }
    }

    fn check(found: &[Checkpoint], before: Option<&Checkpoint>, expected: Option<&str>) {
        assert_eq!(choose(found, before).map(|one| one.path.as_str()), expected);
    }

    #[test]
    fn the_newest_complete_one_is_taken() {
        let found = [made("b.pt", 2, true), made("c.pt", 3, false), made("a.pt", 1, true)];
        check(&found, None, Some("b.pt"));
        check(&found, Some(&found[0]), Some("a.pt"));
        check(&found, Some(&found[2]), None);
        check(&[], None, None);
    }

    #[test]
    fn of_one_age_the_highest_number_is_taken() {
        check(&[made("step-9.pt", 1, true), made("step-10.pt", 1, true)], None, Some("step-10.pt"));
    }
}
