//! Named columns: rows to Arrow batches and back, without a schema written twice.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt32Builder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};

/// Columns of a batch that is being made. All must have the same number of rows.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(mut self, name: &str, nullable: bool, array: impl Array + 'static) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(Arc::new(array));
        self
    }

    pub(crate) fn u64(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        self.push(name, false, UInt64Array::from_iter_values(values))
    }

    pub(crate) fn u32(self, name: &str, values: impl Iterator<Item = u32>) -> Self {
        self.push(name, false, UInt32Array::from_iter_values(values))
    }

    pub(crate) fn text<'a>(self, name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        self.push(name, false, StringArray::from_iter_values(values))
    }

    pub(crate) fn flag(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        self.push(name, false, values.map(Some).collect::<BooleanArray>())
    }

    pub(crate) fn bytes(self, name: &str, values: impl Iterator<Item = Vec<u8>>) -> Self {
        self.push(name, false, BinaryArray::from_iter_values(values))
    }

    pub(crate) fn some_u64(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        self.push(name, true, values.collect::<UInt64Array>())
    }

    pub(crate) fn some_u32(self, name: &str, values: impl Iterator<Item = Option<u32>>) -> Self {
        self.push(name, true, values.collect::<UInt32Array>())
    }

    pub(crate) fn some_text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<T>>,
    ) -> Self {
        self.push(name, true, values.collect::<StringArray>())
    }

    pub(crate) fn some_flag(self, name: &str, values: impl Iterator<Item = Option<bool>>) -> Self {
        self.push(name, true, values.collect::<BooleanArray>())
    }

    /// Lists of strings.
    pub(crate) fn texts<'a>(self, name: &str, values: impl Iterator<Item = Option<&'a [String]>>) -> Self {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for list in values {
            for text in list.unwrap_or_default() {
                lists.values().append_value(text);
            }
            lists.append(list.is_some());
        }
        self.push(name, true, lists.finish())
    }

    /// Lists of (name, count).
    pub(crate) fn counts<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a [(String, u32)]>>,
    ) -> Self {
        let fields = Fields::from(vec![
            Field::new("name", DataType::Utf8, false),
            Field::new("count", DataType::UInt32, false),
        ]);
        let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0));
        for list in values {
            for (text, count) in list.unwrap_or_default() {
                let item = lists.values();
                item.field_builder::<StringBuilder>(0).expect("declared so").append_value(text);
                item.field_builder::<UInt32Builder>(1).expect("declared so").append_value(*count);
                item.append(true);
            }
            lists.append(list.is_some());
        }
        self.push(name, true, lists.finish())
    }

    /// Lists of structs of strings.
    pub(crate) fn structs<'a, const N: usize>(
        self,
        name: &str,
        keys: [&str; N],
        values: impl Iterator<Item = Option<Vec<[&'a str; N]>>>,
    ) -> Self {
        let fields: Fields = keys.map(|key| Field::new(key, DataType::Utf8, false)).to_vec().into();
        let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0));
        for list in values {
            for texts in list.iter().flatten() {
                let item = lists.values();
                for (index, text) in texts.iter().enumerate() {
                    item.field_builder::<StringBuilder>(index).expect("declared so").append_value(text);
                }
                item.append(true);
            }
            lists.append(list.is_some());
        }
        self.push(name, true, lists.finish())
    }

    /// The batch, with these words about it in its schema.
    pub(crate) fn finish(self, metadata: HashMap<String, String>) -> RecordBatch {
        let schema = Schema::new_with_metadata(self.fields, metadata);
        RecordBatch::try_new(Arc::new(schema), self.arrays).expect("one value for every row")
    }
}

/// Access to a batch's columns by name. A column that is absent reads as empty, zero or false: an older version did
/// not write it. A column of another type is an error: the file is not ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cells<'a>(pub(crate) &'a RecordBatch);

type Cell<T> = Result<T, ArrowError>;

impl<'a> Cells<'a> {
    fn array<A: Array + 'static>(self, name: &str) -> Cell<Option<&'a A>> {
        let Some(array) = self.0.column_by_name(name) else {
            return Ok(None);
        };
        let typed = array.as_any().downcast_ref();
        let wrong = || ArrowError::SchemaError(format!("column `{name}` holds {}", array.data_type()));
        typed.map_or_else(|| Err(wrong()), |typed| Ok(Some(typed)))
    }

    pub(crate) fn some_u64(self, name: &str) -> Cell<impl Fn(usize) -> Option<u64> + 'a> {
        let array = self.array::<UInt64Array>(name)?;
        Ok(move |row| array.filter(|array| array.is_valid(row)).map(|array| array.value(row)))
    }

    pub(crate) fn some_u32(self, name: &str) -> Cell<impl Fn(usize) -> Option<u32> + 'a> {
        let array = self.array::<UInt32Array>(name)?;
        Ok(move |row| array.filter(|array| array.is_valid(row)).map(|array| array.value(row)))
    }

    pub(crate) fn u64(self, name: &str) -> Cell<impl Fn(usize) -> u64 + 'a> {
        let value = self.some_u64(name)?;
        Ok(move |row| value(row).unwrap_or(0))
    }

    pub(crate) fn u32(self, name: &str) -> Cell<impl Fn(usize) -> u32 + 'a> {
        let value = self.some_u32(name)?;
        Ok(move |row| value(row).unwrap_or(0))
    }

    pub(crate) fn text(self, name: &str) -> Cell<impl Fn(usize) -> &'a str> {
        let array = self.array::<StringArray>(name)?;
        Ok(move |row| array.filter(|array| array.is_valid(row)).map_or("", |array| array.value(row)))
    }

    pub(crate) fn flag(self, name: &str) -> Cell<impl Fn(usize) -> bool + 'a> {
        let array = self.array::<BooleanArray>(name)?;
        Ok(move |row| array.is_some_and(|array| array.is_valid(row) && array.value(row)))
    }

    pub(crate) fn bytes(self, name: &str) -> Cell<impl Fn(usize) -> &'a [u8]> {
        let array = self.array::<BinaryArray>(name)?;
        Ok(move |row| array.filter(|array| array.is_valid(row)).map_or(&[][..], |array| array.value(row)))
    }

    /// Whether the row has a value in this column.
    pub(crate) fn present(self, name: &str) -> impl Fn(usize) -> bool + 'a {
        let array = self.0.column_by_name(name);
        move |row| array.is_some_and(|array| array.is_valid(row))
    }

    pub(crate) fn texts(self, name: &str) -> Cell<impl Fn(usize) -> Vec<String> + 'a> {
        let lists = self.array::<ListArray>(name)?;
        let items = lists.map(|lists| part::<StringArray>(lists.values(), name)).transpose()?;
        Ok(move |row| span(lists, row).filter_map(|item| Some(items?.value(item).to_owned())).collect())
    }

    pub(crate) fn counts(self, name: &str) -> Cell<impl Fn(usize) -> Vec<(String, u32)> + 'a> {
        let lists = self.array::<ListArray>(name)?;
        let names = lists.map(|lists| member::<StringArray>(lists, name, "name")).transpose()?;
        let counts = lists.map(|lists| member::<UInt32Array>(lists, name, "count")).transpose()?;
        Ok(move |row| {
            let pair = |item| Some((names?.value(item).to_owned(), counts?.value(item)));
            span(lists, row).filter_map(pair).collect()
        })
    }

    pub(crate) fn structs<const N: usize>(
        self,
        name: &str,
        keys: [&str; N],
    ) -> Cell<impl Fn(usize) -> Vec<[&'a str; N]>> {
        let lists = self.array::<ListArray>(name)?;
        let mut members = [None; N];
        for (member_of, key) in members.iter_mut().zip(keys) {
            *member_of = lists.map(|lists| member::<StringArray>(lists, name, key)).transpose()?;
        }
        Ok(move |row| {
            let texts = |item| members.map(|texts| texts.map_or("", |texts| texts.value(item)));
            span(lists, row).map(texts).collect()
        })
    }
}

/// Positions of a row's items.
fn span(lists: Option<&ListArray>, row: usize) -> std::ops::Range<usize> {
    let Some(lists) = lists.filter(|lists| lists.is_valid(row)) else {
        return 0..0;
    };
    let offsets = lists.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

fn part<'a, A: Array + 'static>(array: &'a ArrayRef, name: &str) -> Cell<&'a A> {
    let wrong = || ArrowError::SchemaError(format!("items of column `{name}` are {}", array.data_type()));
    array.as_any().downcast_ref().ok_or_else(wrong)
}

fn member<'a, A: Array + 'static>(lists: &'a ListArray, name: &str, key: &str) -> Cell<&'a A> {
    let items = part::<StructArray>(lists.values(), name)?;
    let missing = || ArrowError::SchemaError(format!("items of column `{name}` have no `{key}`"));
    part(items.column_by_name(key).ok_or_else(missing)?, name)
}
