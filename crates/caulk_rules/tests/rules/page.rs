//! A rule's page as a fixture: its title, its sections and the programs in them.
//!
//! A fenced `python` block is a program of its own. A line that ends with `# diagnostic: [rule-name]` (several names
//! separated by commas) is where that rule must report; where `advice` follows, no more than advice. A block whose first line is `# file: folder/name.py` is one file
//! of a project: blocks of that kind with nothing but blank lines between them belong together.

use caulk_core::LeakClass;
use caulk_python::SourceFile;

/// What every page holds, in this order.
pub(crate) const SECTIONS: [&str; 8] = [
    "What it finds",
    "Why memory grows",
    "Example",
    "Use instead",
    "Fix safety",
    "Limits",
    "References",
    "Cases",
];

const MARK: &str = "# diagnostic: [";
const FILE: &str = "# file: ";

/// A page, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// What stands after the first `# `.
    pub(crate) title: String,
    pub(crate) sections: Vec<String>,
    pub(crate) programs: Vec<Program>,
}

/// A program in a page: one file or several.
#[derive(Debug)]
pub(crate) struct Program {
    /// The section that it stands in.
    pub(crate) section: String,
    pub(crate) files: Vec<PageFile>,
}

/// A file of a program.
#[derive(Debug)]
pub(crate) struct PageFile {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Line of the page that holds its first line, from 1.
    first_line: u32,
}

/// A line at which a rule reports, or must.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    /// Line of the page.
    pub(crate) line: u32,
    pub(crate) class: LeakClass,
    /// No more than advice must be reported.
    pub(crate) advice: bool,
}

impl Page {
    /// Reads Markdown.
    ///
    /// # Panics
    /// Where a block is not closed.
    pub(crate) fn parse(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut lines = markdown.lines().zip(1..);
        let mut apart = true;
        while let Some((line, number)) = lines.next() {
            if let Some(fence) = line.strip_prefix("```") {
                let text: Vec<_> =
                    lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```").collect();
                assert!(
                    number as usize + text.len() < markdown.lines().count(),
                    "line {number}: block without end"
                );
                if fence == "python" {
                    page.add(text.join("\n") + "\n", number + 1, apart);
                    apart = false;
                }
            } else if let Some(title) = line.strip_prefix("# ") {
                title.clone_into(&mut page.title);
            } else if let Some(section) = line.strip_prefix("## ") {
                page.sections.push(section.to_owned());
                apart = true;
            } else if !line.trim().is_empty() {
                apart = true;
            }
        }
        page
    }

    fn add(&mut self, text: String, first_line: u32, apart: bool) {
        let named = text.lines().next().and_then(|line| line.strip_prefix(FILE)).map(str::to_owned);
        let file = |path| PageFile { path, text, first_line };
        match (named, self.programs.last_mut()) {
            (Some(path), Some(last)) if !apart && last.is_project() => last.files.push(file(path)),
            (named, _) => {
                let section = self.sections.last().cloned().unwrap_or_default();
                let path = named.unwrap_or_else(|| "example.py".to_owned());
                self.programs.push(Program { section, files: vec![file(path)] });
            }
        }
    }
}

impl Program {
    fn is_project(&self) -> bool {
        self.files.iter().all(|file| file.text.starts_with(FILE))
    }

    /// Its files, for an analysis.
    pub(crate) fn sources(&self) -> Vec<SourceFile> {
        let source = |file: &PageFile| SourceFile { path: file.path.clone(), text: file.text.clone() };
        self.files.iter().map(source).collect()
    }

    /// Where the page says that rules report, in order.
    ///
    /// # Panics
    /// Where a mark names no rule.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<_> = self.files.iter().flat_map(PageFile::marks).collect();
        marks.sort();
        marks
    }

    /// A line of one of its files as a line of the page.
    ///
    /// # Panics
    /// Where there is no such file.
    pub(crate) fn line(&self, path: &str, line: u32) -> u32 {
        let file = self.files.iter().find(|file| file.path == path);
        file.unwrap_or_else(|| panic!("`{path}` is none of the program's files")).first_line + line - 1
    }
}

impl PageFile {
    fn marks(&self) -> Vec<Mark> {
        let lines = self.text.lines().zip(self.first_line..);
        let marks = lines.filter_map(|(line, number)| Some((line.trim_end().split_once(MARK)?.1, number)));
        marks.flat_map(|(mark, number)| named(mark, number)).collect()
    }
}

fn named(mark: &str, line: u32) -> Vec<Mark> {
    let (mark, advice) = mark.strip_suffix(" advice").map_or((mark, false), |mark| (mark, true));
    let names = mark.strip_suffix(']').unwrap_or_else(|| panic!("line {line}: `]` is missing"));
    let class = |name: &str| name.trim().parse().unwrap_or_else(|_| panic!("line {line}: no rule `{name}`"));
    names.split(',').map(|name| Mark { line, class: class(name), advice }).collect()
}

#[test]
fn a_page_is_taken_apart() {
    let page = Page::parse(
        "# a-rule\n\n## Example\n\n```python\na()\nb()  # diagnostic: [cached-method, figure-not-closed]\n```\n\n\
         ```text\n# no title\n```\n\n## Cases\n\n```python\n# file: a.py\n```\n\n```python\n# file: b/c.py\nx  \
         # diagnostic: [cached-method] advice\n```\n\nAnother one.\n\n```python\n# file: a.py\n```\n\n```python\n```\n",
    );
    assert_eq!(
        (page.title.as_str(), page.sections),
        ("a-rule", vec!["Example".to_owned(), "Cases".to_owned()])
    );
    let paths = |program: &Program| program.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    let all: Vec<_> = page.programs.iter().map(paths).collect();
    assert_eq!(all, [vec!["example.py"], vec!["a.py", "b/c.py"], vec!["a.py"], vec!["example.py"]]);
    let mark = |line, class| Mark { line, class, advice: line == 22 };
    assert_eq!(
        page.programs[0].marks(),
        [mark(7, LeakClass::CachedMethod), mark(7, LeakClass::FigureNotClosed)]
    );
    assert_eq!(page.programs[1].marks(), [mark(22, LeakClass::CachedMethod)]);
    assert_eq!(page.programs[1].line("b/c.py", 2), 22);
}
