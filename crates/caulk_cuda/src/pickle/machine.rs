//! The machine that a pickle is a program for: a stack, marks on it, and a memo of what was made.
//!
//! Instructions and their numbers: `Lib/pickletools.py` of `CPython`, protocols 1 to 5.

use std::io::BufRead;

use super::input::Input;
use super::plain::{Build, PickleProblem};

/// On the stack and in the memo: an item, or a container by its number.
#[derive(Clone, Copy)]
enum Value<I> {
    Item(I),
    Container(u32),
}

/// A container, until it is complete.
enum Container<I> {
    List(Vec<I>),
    Dict(Vec<(I, I)>),
    Complete(I),
}

pub(super) struct Machine<'a, B: Build> {
    build: &'a mut B,
    stack: Vec<Value<B::Item>>,
    marks: Vec<usize>,
    memo: Vec<Value<B::Item>>,
    containers: Vec<Container<B::Item>>,
    /// Bytes of texts and of complete containers, which the caller may keep.
    kept: u64,
    /// Bytes that values may take.
    memory: u64,
    begun: bool,
}

impl<'a, B: Build> Machine<'a, B> {
    pub(super) fn new(build: &'a mut B, memory: u64) -> Self {
        let (stack, marks, memo, containers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { build, stack, marks, memo, containers, kept: 0, memory, begun: false }
    }

    /// One instruction; the item at the end of the program.
    pub(super) fn step<R: BufRead>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<B::Item>, PickleProblem> {
        let code = input.byte()?;
        if !std::mem::replace(&mut self.begun, true) && code != 0x80 {
            return Err(PickleProblem::NoPickle);
        }
        match code {
            // PROTO
            0x80 => drop(input.byte()?),
            // FRAME
            0x95 => drop(input.number::<8>()?),
            b'.' => return self.pop().map(|value| Some(self.complete(value))),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.above_mark()?),
            b'2' => {
                let top = *self.stack.last().ok_or(EMPTY)?;
                self.stack.push(top);
            }
            _ => self.value(code, input)?,
        }
        let values = (self.stack.len() + self.memo.len()) * size_of::<Value<B::Item>>();
        let containers = self.containers.len() * size_of::<Container<B::Item>>();
        if (values + containers) as u64 + self.kept > self.memory {
            Err(PickleProblem::TooMuch)
        } else {
            Ok(None)
        }
    }

    /// Instructions that make, remember or fill values.
    fn value<R: BufRead>(&mut self, code: u8, input: &mut Input<R>) -> Result<(), PickleProblem> {
        match code {
            b'N' => self.push(B::none),
            0x88 => self.push(|build| build.boolean(true)),
            0x89 => self.push(|build| build.boolean(false)),
            b'J' => self.integer(i64::from(input.number::<4>()? as u32 as i32)),
            b'K' => self.integer(input.number::<1>()? as i64),
            b'M' => self.integer(input.number::<2>()? as i64),
            0x8a => self.long(input.number::<1>(), input)?,
            0x8b => self.long(input.number::<4>(), input)?,
            b'G' => {
                let value = f64::from_bits(input.number::<8>()?.swap_bytes());
                self.push(|build| build.float(value));
            }
            // Texts and bytes, by the width of their length.
            0x8c | b'U' | b'C' => self.text(input.number::<1>(), input)?,
            b'X' | b'T' | b'B' => self.text(input.number::<4>(), input)?,
            0x8d | 0x8e | 0x96 => self.text(input.number::<8>(), input)?,
            b'h' => self.remembered(input.number::<1>()?)?,
            b'j' => self.remembered(input.number::<4>()?)?,
            b'q' => self.remember(Some(input.number::<1>()?))?,
            b'r' => self.remember(Some(input.number::<4>()?))?,
            0x94 => self.remember(None)?,
            _ => self.container(code)?,
        }
        Ok(())
    }

    fn container(&mut self, code: u8) -> Result<(), PickleProblem> {
        match code {
            b']' => self.open(Container::List(Vec::new())),
            b'}' => self.open(Container::Dict(Vec::new())),
            b')' => self.push(|build| build.list(Vec::new())),
            0x85..=0x87 => {
                let from = self.stack.len().checked_sub(usize::from(code - 0x84)).ok_or(EMPTY)?;
                self.tuple(from);
            }
            b't' | b'l' => {
                let from = self.marks.pop().ok_or(EMPTY)?;
                self.tuple(from);
            }
            b'd' => {
                let entries = self.above_mark()?;
                self.open(Container::Dict(Vec::new()));
                self.set_items(entries)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.above_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(vec![key, value])?;
            }
            b'u' => {
                let entries = self.above_mark()?;
                self.set_items(entries)?;
            }
            _ => return Err(refused(code)),
        }
        Ok(())
    }

    fn push(&mut self, make: impl FnOnce(&mut B) -> B::Item) {
        self.stack.push(Value::Item(make(self.build)));
    }

    fn integer(&mut self, value: i64) {
        self.push(|build| build.integer(value));
    }

    /// A whole number with its length; one beyond 64 bits, larger than any address or size, becomes a float.
    fn long<R: BufRead>(
        &mut self,
        length: Result<u64, PickleProblem>,
        input: &mut Input<R>,
    ) -> Result<(), PickleProblem> {
        match whole(input.bytes(length?)?) {
            Ok(value) => self.integer(value),
            Err(value) => self.push(|build| build.float(value)),
        }
        Ok(())
    }

    fn text<R: BufRead>(
        &mut self,
        length: Result<u64, PickleProblem>,
        input: &mut Input<R>,
    ) -> Result<(), PickleProblem> {
        let length = length?;
        let text = String::from_utf8_lossy(input.bytes(length)?);
        self.stack.push(Value::Item(self.build.text(&text)));
        self.kept += length;
        Ok(())
    }

    fn open(&mut self, container: Container<B::Item>) {
        self.stack.push(Value::Container(self.containers.len() as u32));
        self.containers.push(container);
    }

    fn tuple(&mut self, from: usize) {
        let items = self.stack.split_off(from.min(self.stack.len()));
        let items = self.complete_all(items);
        self.push(|build| build.list(items));
    }

    fn append(&mut self, items: Vec<Value<B::Item>>) -> Result<(), PickleProblem> {
        let items = self.complete_all(items);
        match self.top()? {
            Container::List(list) => list.extend(items),
            _ => return Err(PickleProblem::Damaged("items for what is no open list")),
        }
        Ok(())
    }

    fn set_items(&mut self, entries: Vec<Value<B::Item>>) -> Result<(), PickleProblem> {
        let entries = self.complete_all(entries);
        let (pairs, rest) = entries.as_chunks();
        match self.top()? {
            Container::Dict(dict) if rest.is_empty() => {
                dict.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            _ => return Err(PickleProblem::Damaged("entries for what is no open dict")),
        }
        Ok(())
    }

    /// The container on top of the stack.
    fn top(&mut self) -> Result<&mut Container<B::Item>, PickleProblem> {
        match self.stack.last() {
            Some(Value::Container(number)) => Ok(&mut self.containers[*number as usize]),
            _ => Err(PickleProblem::Damaged("no container to fill")),
        }
    }

    fn complete_all(&mut self, values: Vec<Value<B::Item>>) -> Vec<B::Item> {
        values.into_iter().map(|value| self.complete(value)).collect()
    }

    /// The item of a value. A container is complete once something else contains it.
    fn complete(&mut self, value: Value<B::Item>) -> B::Item {
        let number = match value {
            Value::Item(item) => return item,
            Value::Container(number) => number as usize,
        };
        let item = match std::mem::replace(&mut self.containers[number], Container::List(Vec::new())) {
            Container::Complete(item) => item,
            Container::List(items) => {
                self.kept += size_of_val(items.as_slice()) as u64;
                self.build.list(items)
            }
            Container::Dict(entries) => {
                self.kept += size_of_val(entries.as_slice()) as u64 / 4;
                self.build.dict(entries)
            }
        };
        self.containers[number] = Container::Complete(item);
        item
    }

    /// Numbers of the memo are given in order.
    fn remember(&mut self, number: Option<u64>) -> Result<(), PickleProblem> {
        let top = *self.stack.last().ok_or(EMPTY)?;
        match number {
            Some(number) if number > self.memo.len() as u64 => {
                return Err(PickleProblem::Damaged("a number of the memo is left out"));
            }
            Some(number) if number < self.memo.len() as u64 => self.memo[number as usize] = top,
            _ => self.memo.push(top),
        }
        Ok(())
    }

    fn remembered(&mut self, number: u64) -> Result<(), PickleProblem> {
        let value = self
            .memo
            .get(number as usize)
            .ok_or(PickleProblem::Damaged("nothing has this number in the memo"))?;
        self.stack.push(*value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value<B::Item>, PickleProblem> {
        let bottom = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= bottom { Err(EMPTY) } else { self.stack.pop().ok_or(EMPTY) }
    }

    fn above_mark(&mut self) -> Result<Vec<Value<B::Item>>, PickleProblem> {
        let mark = self.marks.pop().ok_or(PickleProblem::Damaged("a mark is missing"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }
}

const EMPTY: PickleProblem = PickleProblem::Damaged("the stack is empty");

/// A signed number, the lowest byte first; as a float if it is beyond 64 bits.
fn whole(bytes: &[u8]) -> Result<i64, f64> {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    if bytes.len() <= 8 {
        let mut all = [if negative { 0xff } else { 0 }; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        return Ok(i64::from_le_bytes(all));
    }
    let magnitude = bytes.iter().rev().fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte));
    Err(if negative { magnitude - 256_f64.powi(bytes.len() as i32) } else { magnitude })
}

/// Instructions that call or look up something, by their names.
const CALLS: [(u8, &str); 15] = [
    (b'c', "GLOBAL"),
    (0x93, "STACK_GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

fn refused(code: u8) -> PickleProblem {
    let known = CALLS.iter().find(|(call, _)| *call == code);
    known.map_or(PickleProblem::Unknown(code), |(_, name)| PickleProblem::Forbidden(name))
}
