//! A rule's page, as far as Markdown is used there: headings, paragraphs, lists, fenced code, tables as they are.

use crate::TextOptions;
use crate::page::{Page, Tone};

/// A page for a terminal.
pub fn markdown(text: &str, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    let mut paragraph = Paragraph::default();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            paragraph.end(&mut page);
            page.gap();
            code = !code;
        } else if code {
            page.line(&[(Tone::Plain, "    "), (Tone::Plain, line)]);
        } else if let Some(heading) = line.strip_prefix("## ").or_else(|| line.strip_prefix("# ")) {
            paragraph.end(&mut page);
            page.gap();
            page.line(&[(if line.starts_with("## ") { Tone::Strong } else { Tone::Good }, heading)]);
        } else if line.trim().is_empty() {
            paragraph.end(&mut page);
            page.gap();
        } else if line.starts_with('|') {
            paragraph.end(&mut page);
            page.line(&[(Tone::Plain, line)]);
        } else {
            paragraph.add(&mut page, line);
        }
    }
    paragraph.end(&mut page);
    page.finish()
}

/// Lines that are wrapped together.
#[derive(Default)]
struct Paragraph {
    mark: &'static str,
    text: String,
}

impl Paragraph {
    fn add(&mut self, page: &mut Page, line: &str) {
        let item = line.trim_start().strip_prefix("- ");
        if let Some(item) = item {
            self.end(page);
            self.mark = "- ";
            item.clone_into(&mut self.text);
        } else {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(line.trim());
        }
    }

    fn end(&mut self, page: &mut Page) {
        if !self.text.is_empty() {
            page.prose((Tone::Plain, self.mark), Tone::Plain, &self.text);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_code_is_not() {
        let text = "# name\n\n## What\n\nSome words that\nare wrapped.\n- one\n- two\n  more\n\n```python\nx = 1\n\ny = 2\n```\n";
        let shown = markdown(text, &TextOptions { color: false, width: 40, full: false });
        assert_eq!(
            shown,
            "name\n\nWhat\n\nSome words that are wrapped.\n- one\n- two more\n\n    x = 1\n\n    y = 2\n\n"
        );
    }
}
