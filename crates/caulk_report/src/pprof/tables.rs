//! Texts, functions and locations of a profile: each is kept once and has a number.

use std::collections::HashMap;

use caulk_core::StackUse;

use super::message::{Function, Line, Location};

/// Gives out the numbers.
#[derive(Default)]
pub(super) struct Tables {
    texts: HashMap<String, i64>,
    strings: Vec<String>,
    functions: HashMap<(i64, i64), u64>,
    function: Vec<Function>,
    locations: HashMap<(u64, u32), u64>,
    location: Vec<Location>,
}

impl Tables {
    /// Number of a text. The first one is the empty text, as the format has it.
    pub(super) fn text(&mut self, text: &str) -> i64 {
        if self.strings.is_empty() {
            self.strings.push(String::new());
            self.texts.insert(String::new(), 0);
        }
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.strings.len() as i64;
        self.strings.push(text.to_owned());
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.text(name), self.text(file));
        let next = self.function.len() as u64 + 1;
        let id = *self.functions.entry((name, filename)).or_insert(next);
        if id == next {
            self.function.push(Function { id, name, system_name: name, filename });
        }
        id
    }

    fn location(&mut self, name: &str, file: &str, line: u32) -> u64 {
        let function_id = self.function(name, file);
        let next = self.location.len() as u64 + 1;
        let id = *self.locations.entry((function_id, line)).or_insert(next);
        if id == next {
            self.location.push(Location { id, line: vec![Line { function_id, line: line.into() }] });
        }
        id
    }

    /// Locations of a stack, the innermost first.
    pub(super) fn stack(&mut self, stack: &StackUse) -> Vec<u64> {
        let mut ids = Vec::new();
        if stack.borrowed && !stack.frames.is_empty() {
            ids.push(self.location("threads that work for it", "", 0));
        }
        for frame in stack.frames.iter().rev() {
            ids.push(self.location(&frame.function, &frame.file, frame.line));
        }
        let outside = if stack.rest {
            Some("stacks that hold little")
        } else if stack.frames.is_empty() {
            Some("no Python on the stack")
        } else {
            stack.truncated.then_some("… frames further out")
        };
        ids.extend(outside.map(|name| self.location(name, "", 0)));
        ids
    }

    /// All texts, functions and locations, in the order of their numbers.
    pub(super) fn finish(self) -> (Vec<String>, Vec<Function>, Vec<Location>) {
        (self.strings, self.function, self.location)
    }
}
