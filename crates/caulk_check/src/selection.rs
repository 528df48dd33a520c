//! Which rules are on.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::{Group, LeakClass, Severity};
use caulk_rules::{RULES, Rule};

use crate::nearest::nearest;

/// Rules that are on, and how harmful their findings are taken for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    classes: BTreeSet<LeakClass>,
    severities: BTreeMap<LeakClass, Severity>,
}

/// A name that stands for no rule and no group of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRule {
    name: String,
}

impl std::fmt::Display for UnknownRule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.name;
        if LeakClass::ALL.iter().any(|class| class.as_str() == name) {
            return write!(
                out,
                "`{name}` is not a pattern of source: `caulk run` finds it in a running program"
            );
        }
        write!(out, "no rule is called `{name}`")?;
        match nearest(name, names()) {
            Some(meant) => write!(out, "; did you mean `{meant}`?"),
            None => write!(out, "\nhint: `caulk rules` lists them"),
        }
    }
}

impl std::error::Error for UnknownRule {}

/// Everything that may stand for rules.
fn names() -> impl Iterator<Item = &'static str> {
    let rules = RULES.iter().map(|rule| rule.class.as_str());
    rules.chain(Group::ALL.iter().map(|group| group.as_str())).chain(["all", "default"])
}

/// The rules that a name stands for: a rule, a group such as `graph`, `default` or `all`.
fn meant(name: &str) -> Result<Vec<&'static Rule>, UnknownRule> {
    let found: Vec<&'static Rule> = match name {
        "all" => RULES.to_vec(),
        "default" => RULES.iter().copied().filter(|rule| rule.default).collect(),
        name => {
            let fits = |rule: &&Rule| rule.class.as_str() == name || rule.class.group().as_str() == name;
            RULES.iter().copied().filter(fits).collect()
        }
    };
    let empty_group = Group::ALL.iter().any(|group| group.as_str() == name);
    if found.is_empty() && !empty_group { Err(UnknownRule { name: name.to_owned() }) } else { Ok(found) }
}

impl Selection {
    /// The rules that are on by default.
    pub fn standard() -> Self {
        let on = RULES.iter().filter(|rule| rule.default);
        Self { classes: on.map(|rule| rule.class).collect(), severities: BTreeMap::new() }
    }

    /// No rule.
    pub fn none() -> Self {
        Self::default()
    }

    /// Turns rules on.
    ///
    /// # Errors
    /// [`UnknownRule`] for the first name that stands for nothing.
    pub fn add(&mut self, names: &[String]) -> Result<(), UnknownRule> {
        for name in names {
            self.classes.extend(meant(name)?.iter().map(|rule| rule.class));
        }
        Ok(())
    }

    /// Turns rules off.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn remove(&mut self, names: &[String]) -> Result<(), UnknownRule> {
        for name in names {
            for rule in meant(name)? {
                self.classes.remove(&rule.class);
            }
        }
        Ok(())
    }

    /// Takes what some rules find for more or less harmful than they do.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn rate(&mut self, name: &str, severity: Severity) -> Result<(), UnknownRule> {
        self.severities.extend(meant(name)?.iter().map(|rule| (rule.class, severity)));
        Ok(())
    }

    /// The same rules with the severities of another selection.
    #[must_use]
    pub fn rated_as(self, other: &Self) -> Self {
        Self { classes: self.classes, severities: other.severities.clone() }
    }

    /// Classes that a list of names stands for.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn classes(names: &[String]) -> Result<BTreeSet<LeakClass>, UnknownRule> {
        let mut selection = Self::none();
        selection.add(names)?;
        Ok(selection.classes)
    }

    /// Whether a rule is on.
    pub fn has(&self, class: LeakClass) -> bool {
        self.classes.contains(&class)
    }

    /// The rules that are on, in order of names.
    pub fn rules(&self) -> Vec<&'static Rule> {
        RULES.iter().copied().filter(|rule| self.has(rule.class)).collect()
    }

    /// The severity that the user gives a class.
    pub fn severity(&self, class: LeakClass) -> Option<Severity> {
        self.severities.get(&class).copied()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn check(add: &[&str], remove: &[&str], on: bool) {
        let mut selection = Selection::none();
        selection.add(&names(add)).unwrap();
        selection.remove(&names(remove)).unwrap();
        assert_eq!(selection.has(LeakClass::CachedMethod), on, "{add:?} {remove:?}");
        assert_eq!(selection.rules().iter().any(|rule| rule.class == LeakClass::CachedMethod), on);
    }

    #[test]
    fn rules_groups_and_all_can_be_named() {
        for name in ["cached-method", "container", "default", "all"] {
            check(&[name], &[], true);
            check(&["all"], &[name], false);
        }
        check(&["figure"], &[], false);
        check(&[], &["graph"], false);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_helps() {
        let error = |name| Selection::none().add(&names(&[name])).unwrap_err().to_string();
        assert_eq!(
            error("cached-methods"),
            "no rule is called `cached-methods`; did you mean `cached-method`?"
        );
        assert!(error("E501").contains("`caulk rules`"));
        assert!(error("native-growth").contains("`caulk run`"));
    }
}
