//! The place of a statement, as findings report it.

use caulk_core::{Site, SiteRole};

/// A statement's place. Lines and columns are 1-based, columns in characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Spot {
    /// First line.
    pub line: u32,
    /// Last line; the header's last line for a loop or `with`.
    pub end_line: u32,
    /// First column.
    pub column: u32,
    /// Qualified name of the enclosing function without `<locals>`, `<module>` outside of one.
    pub function: String,
    /// The first line's text, without indentation.
    pub text: String,
}

impl Spot {
    /// The spot as a finding reports it.
    pub fn site(&self, file: &str, role: SiteRole) -> Site {
        Site {
            role,
            file: file.to_owned(),
            line: self.line,
            end_line: self.end_line,
            column: self.column,
            function: self.function.clone(),
            text: self.text.clone(),
            cell: None,
        }
    }

    /// Whether `line` lies in the statement.
    pub fn covers(&self, line: u32) -> bool {
        (self.line..=self.end_line).contains(&line)
    }
}
