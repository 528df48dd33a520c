//! The list of videos: a table with a column `video_path`, perhaps `label`, and whatever else.

use std::collections::HashMap;

use crate::table::{self, TableError};

/// The column with the videos.
pub const VIDEO: &str = "video_path";
/// The column with what they show.
pub const LABEL: &str = "label";

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// No table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A column is missing.
    #[error("no column `{name}`{}", others(.columns))]
    NoColumn {
        /// The column.
        name: String,
        /// Those that there are.
        columns: Vec<String>,
    },
    /// A row without a video.
    #[error("line {0}: `video_path` is empty")]
    NoVideo(usize),
    /// A video twice.
    #[error("line {line}: `{video}` is in line {first} already")]
    Twice {
        /// Where.
        line: usize,
        /// The video.
        video: String,
        /// Where before.
        first: usize,
    },
}

/// Videos, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Manifest {
    /// Reads a table.
    ///
    /// # Errors
    /// If it is none, has no column `video_path`, or names a video twice or not at all.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut rows = table::parse(text)?.into_iter();
        let head = rows.next().map(|(_, head)| head).unwrap_or_default();
        let rows: Vec<(usize, Vec<String>)> = rows.collect();
        let video = position(&head, VIDEO)?;
        let mut seen = HashMap::new();
        for (line, row) in &rows {
            if row[video].is_empty() {
                return Err(ManifestError::NoVideo(*line));
            }
            if let Some(first) = seen.insert(&row[video], *line) {
                return Err(ManifestError::Twice { line: *line, video: row[video].clone(), first });
            }
        }
        Ok(Self { head, rows: rows.into_iter().map(|(_, row)| row).collect() })
    }

    /// Videos as they are named.
    pub fn videos(&self) -> Vec<&str> {
        self.column(VIDEO).unwrap_or_default()
    }

    /// What each video shows; empty where nothing is said.
    pub fn labels(&self) -> Vec<&str> {
        self.column(LABEL).unwrap_or_else(|_| vec![""; self.rows.len()])
    }

    /// Cells of a column.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn column(&self, name: &str) -> Result<Vec<&str>, ManifestError> {
        let at = position(&self.head, name)?;
        Ok(self.rows.iter().map(|row| row[at].as_str()).collect())
    }
}

fn position(head: &[String], name: &str) -> Result<usize, ManifestError> {
    let found = head.iter().position(|column| column.trim() == name);
    found.ok_or_else(|| ManifestError::NoColumn { name: name.to_owned(), columns: head.to_vec() })
}

fn others(columns: &[String]) -> String {
    match columns {
        [] => String::new(),
        [only] if only.contains([';', '\t']) => {
            format!("; the head is `{only}`\nhint: cells are divided by commas")
        }
        _ => format!("; there are: {}", columns.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn videos_and_labels_in_any_order_of_columns() {
        let manifest = Manifest::parse("label,person,video_path\nreal,7,a.mp4\nfake,8,b/c.mp4\n").unwrap();
        assert_eq!(manifest.videos(), ["a.mp4", "b/c.mp4"]);
        assert_eq!(manifest.labels(), ["real", "fake"]);
        assert_eq!(manifest.column("person").unwrap(), ["7", "8"]);
    }

    #[test]
    fn labels_may_be_missing() {
        assert_eq!(Manifest::parse("video_path\na.mp4\n").unwrap().labels(), [""]);
    }

    fn check(text: &str, message: &str) {
        assert_eq!(Manifest::parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn what_cannot_be_used_says_where() {
        check("path,label\na.mp4,\n", "no column `video_path`; there are: path, label");
        check(
            "video_path;label\na.mp4;x\n",
            "no column `video_path`; the head is `video_path;label`\nhint: cells are divided by commas",
        );
        check("", "no column `video_path`");
        check("video_path,label\n,x\n", "line 2: `video_path` is empty");
        check("video_path\na.mp4\nb.mp4\na.mp4\n", "line 4: `a.mp4` is in line 2 already");
    }
}
