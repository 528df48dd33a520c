//! The bytes of a message: little-endian integers as variable-length groups of seven bits, strings and lists
//! with their length first.

/// Why a frame cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The frame ends before its fields do.
    Truncated,
    /// A message of a later version; the frame can be skipped.
    UnknownTag(u8),
    /// A field holds a code of a later version: of what kind, and its number. The frame can be skipped.
    UnknownCode(&'static str, u64),
    /// A field holds a value that its type does not have.
    Invalid(&'static str),
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated => f.write_str("message stops in the middle of a field"),
            Self::UnknownTag(tag) => write!(f, "message of unknown kind {tag}"),
            Self::UnknownCode(kind, code) => write!(f, "message with an unknown {kind}, {code}"),
            Self::Invalid(what) => write!(f, "message holds an impossible {what}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A value with a fixed representation in a message.
pub(crate) trait Field: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(input: &mut &[u8]) -> Result<Self, DecodeError>;

    /// Calls `change` with every text in the value; numbers have none.
    fn each_text(&mut self, _change: &mut dyn FnMut(&mut String)) {}
}

impl Field for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = input.split_first().ok_or(DecodeError::Truncated)?;
            *input = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Invalid("integer"))
    }
}

impl Field for u32 {
    fn write(&self, out: &mut Vec<u8>) {
        u64::from(*self).write(out);
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        u64::read(input)?.try_into().map_err(|_| DecodeError::Invalid("integer"))
    }
}

impl Field for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(u64::read(input)? != 0)
    }
}

impl Field for String {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        let length = u64::read(input)? as usize;
        let (head, rest) = input.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        *input = rest;
        Ok(String::from_utf8_lossy(head).into_owned())
    }

    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        change(self);
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        for item in self {
            item.write(out);
        }
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        let length = u64::read(input)?;
        // Every item takes at least a byte: a false length cannot make this loop long or the list large.
        if length > input.len() as u64 {
            return Err(DecodeError::Truncated);
        }
        (0..length).map(|_| T::read(input)).collect()
    }

    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        for item in self {
            item.each_text(change);
        }
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        bool::read(input)?.then(|| T::read(input)).transpose()
    }

    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        if let Some(value) = self {
            value.each_text(change);
        }
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok((A::read(input)?, B::read(input)?))
    }

    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        self.0.each_text(change);
        self.1.each_text(change);
    }
}

/// Declares message structs with their fields' encoding.
macro_rules! records {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }

        impl $crate::codec::Field for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::codec::Field::write(&self.$field, out);)*
                let _ = out;
            }

            fn read(input: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                let _ = &input;
                Ok(Self { $($field: $crate::codec::Field::read(input)?,)* })
            }

            fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
                $($crate::codec::Field::each_text(&mut self.$field, change);)*
                let _ = change;
            }
        }
    )*};
}

/// Declares enums without fields, encoded as their number, with a stable lower-case name for people and tables.
macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $number:literal $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant = $number,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Stable name, as tables and reports write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::codec::Field for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn read(input: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                match <u64 as $crate::codec::Field>::read(input)? {
                    $($number => Ok(Self::$variant),)*
                    code => Err($crate::codec::DecodeError::UnknownCode(stringify!($name), code)),
                }
            }
        }
    )*};
}

/// Declares enums without fields that are sent by name; a name of another version is kept.
macro_rules! names {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
            /// A name of another version.
            Unknown(String),
        }

        impl $name {
            /// Every value that this version knows, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name.
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)* Self::Unknown(name) => name }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Self {
                match name { $($text => Self::$variant,)* _ => Self::Unknown(name.to_owned()) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::codec::Field for $name {
            fn write(&self, out: &mut Vec<u8>) {
                // As a `String`.
                <u64 as $crate::codec::Field>::write(&(self.as_str().len() as u64), out);
                out.extend_from_slice(self.as_str().as_bytes());
            }

            fn read(input: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                <String as $crate::codec::Field>::read(input).map(|name| Self::from_name(&name))
            }
        }
    )*};
}

pub(crate) use {codes, names, records};

/// Bytes received so far, cut into whole frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
}

impl FrameBuffer {
    /// Longest frame that is believed, in bytes: a longer length means that the stream is not ours.
    pub const LONGEST: usize = 16 << 20;

    /// Adds what was read from the socket.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next whole frame, without its length; `None` while one is incomplete.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if the length is beyond [`Self::LONGEST`]; the stream cannot be used any more.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, DecodeError> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > Self::LONGEST {
            return Err(DecodeError::Invalid("frame length"));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let frame = rest[..length].to_vec();
        self.bytes.drain(..4 + length);
        Ok(Some(frame))
    }
}
