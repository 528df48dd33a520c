//! What agents and the supervisor say to each other: every message, and how it becomes a frame.

mod codes;
mod container;
mod heap;
mod memory;
mod program;
mod request;
mod traits;

pub use codes::{NoteCode, TraceOutcome};
pub use container::*;
pub use heap::*;
pub use memory::*;
pub use program::*;
pub use request::*;
pub use traits::Trait;

use crate::codec::{DecodeError, Field};

macro_rules! messages {
    ($(#[$meta:meta])* $name:ident { $($tag:literal $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("See [`", stringify!($variant), "`].")] $variant($variant),)* }

        impl $name {
            /// Appends the message as one frame.
            pub fn encode(&self, out: &mut Vec<u8>) {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                match self {
                    $(Self::$variant(fields) => {
                        out.push($tag);
                        fields.write(out);
                    })*
                }
                let length = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&length.to_le_bytes());
            }

            /// Reads the message in a frame of [`crate::FrameBuffer::next_frame`].
            ///
            /// # Errors
            /// [`DecodeError`] if the frame is truncated, foreign or of a later version.
            pub fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
                let (&tag, mut fields) = frame.split_first().ok_or(DecodeError::Truncated)?;
                match tag {
                    $($tag => Ok(Self::$variant(Field::read(&mut fields)?)),)*
                    _ => Err(DecodeError::UnknownTag(tag)),
                }
            }

            /// Calls `change` with every text in the message, so that paths in it can be replaced.
            pub fn each_text(&mut self, mut change: impl FnMut(&mut String)) {
                match self {
                    $(Self::$variant(fields) => fields.each_text(&mut change),)*
                }
            }
        }

        $(impl From<$variant> for $name {
            fn from(fields: $variant) -> Self {
                Self::$variant(fields)
            }
        })*
    };
}

messages! {
    /// What an agent says.
    Message {
        1 Hello,
        2 Boundary,
        3 Types,
        4 ContainerLen,
        5 Holder,
        6 Contents,
        7 TraceHit,
        8 TraceState,
        9 LoopSite,
        10 BackwardSite,
        11 Peak,
        12 Note,
        13 Bye,
        14 HeapStack,
        15 HeapLive,
        16 Garbage,
        17 Trim,
        18 Standing,
        19 Answer,
        20 Uncaught,
        21 GpuMade,
        22 Opened,
        23 Rank,
        24 GpuRefusal,
        25 GpuLedger,
    }
}

messages! {
    /// What the supervisor says.
    Command {
        1 Finish,
        2 Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameBuffer;

    fn check(message: Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let mut buffer = FrameBuffer::default();
        for byte in &bytes {
            assert_eq!(buffer.next_frame(), Ok(None));
            buffer.extend(&[*byte]);
        }
        let frame = buffer.next_frame().expect("length is small").expect("frame is whole");
        assert_eq!(Message::decode(&frame), Ok(message));
        for cut in 1..frame.len() {
            assert!(Message::decode(&frame[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn every_field_comes_back() {
        check(Message::Boundary(Boundary {
            seq: 7,
            index: u64::MAX,
            unit: Unit::Steps,
            ..Boundary::default()
        }));
        check(Message::Hello(Hello {
            argv: vec!["train.py".into(), "--x=ü".into()],
            rank: Some(3),
            ..Hello::default()
        }));
        check(Message::Contents(Contents {
            node_types: vec![("MulBackward0".into(), 9)],
            truncated: true,
            ..Contents::default()
        }));
        let step = PathStep { kind: StepKind::Local, name: "trainer".into(), type_name: "Trainer".into() };
        check(Message::Holder(Holder { path: vec![step], complete: true, ..Holder::default() }));
    }

    #[test]
    fn every_text_of_a_message_can_be_replaced() {
        let step = PathStep { kind: StepKind::Local, name: "old".into(), type_name: "old.Trainer".into() };
        let mut message =
            Message::Holder(Holder { path: vec![step], file: "old".into(), ..Holder::default() });
        message.each_text(|text| *text = text.replace("old", "new"));
        let step = PathStep { kind: StepKind::Local, name: "new".into(), type_name: "new.Trainer".into() };
        assert_eq!(message, Holder { path: vec![step], file: "new".into(), ..Holder::default() }.into());
    }

    #[test]
    fn an_unknown_tag_can_be_skipped() {
        assert_eq!(Message::decode(&[250, 1, 2]), Err(DecodeError::UnknownTag(250)));
    }

    #[test]
    fn an_unknown_code_can_be_skipped() {
        // `Boundary` 0 at time 0, with a unit of a later version.
        assert_eq!(Message::decode(&[2, 0, 0, 77]), Err(DecodeError::UnknownCode("Unit", 77)));
    }

    #[test]
    fn a_foreign_stream_is_refused() {
        let mut buffer = FrameBuffer::default();
        buffer.extend(b"GET / HTTP/1.1");
        assert_eq!(buffer.next_frame(), Err(DecodeError::Invalid("frame length")));
    }

    #[test]
    fn a_false_list_length_does_not_allocate() {
        // Tag of `Types`, boundary 0, then a list of 2^62 rows.
        let frame = [3, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
        assert_eq!(Message::decode(&frame), Err(DecodeError::Truncated));
    }

    #[test]
    fn names_are_stable() {
        for unit in Unit::ALL {
            assert_eq!(Unit::from_name(unit.as_str()), Some(*unit));
        }
        assert_eq!(ContainerKind::from_name("lru_cache"), Some(ContainerKind::LruCache));
    }
}
