//! H.264: frames that no other frame refers to.

/// How units lie in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each behind its length in so many bytes, as MP4 and Matroska have it.
    Length(usize),
    /// Each behind a start code, as transport streams have it.
    StartCodes,
}

impl Framing {
    /// Reads it off a stream's decoder configuration.
    pub fn of(configuration: &[u8]) -> Self {
        match configuration {
            [1, _, _, _, sizes, ..] => Self::Length(usize::from(sizes & 3) + 1),
            _ => Self::StartCodes,
        }
    }
}

/// Whether a packet holds a key frame that nothing before it is needed for, neither to decode it nor to show what follows: a
/// slice of type 5. From any other key frame on, frames may come later than it.
pub fn is_instantaneous(packet: &[u8], framing: Framing) -> bool {
    let mut found = false;
    each(packet, framing, |header| found |= header & 0x1F == 5);
    found
}

/// Whether other frames may refer to the one in a packet: a slice has a `nal_ref_idc` that is not 0, or none was found.
pub fn is_referenced(packet: &[u8], framing: Framing) -> bool {
    let (mut slices, mut referenced) = (false, false);
    let whole = each(packet, framing, |header| {
        // Types 1, 2 and 5: slices of the picture.
        if matches!(header & 0x1F, 1 | 2 | 5) {
            slices = true;
            referenced |= header & 0x60 != 0;
        }
    });
    whole.is_none() || !slices || referenced
}

/// Shows the first byte of each unit; `None` where units do not add up.
fn each(packet: &[u8], framing: Framing, look: impl FnMut(u8)) -> Option<()> {
    match framing {
        Framing::Length(size) => each_by_length(packet, size, look),
        Framing::StartCodes => {
            packet.windows(4).filter(|unit| unit[..3] == [0, 0, 1]).map(|unit| unit[3]).for_each(look);
            Some(())
        }
    }
}

fn each_by_length(packet: &[u8], size: usize, mut look: impl FnMut(u8)) -> Option<()> {
    let mut rest = packet;
    while !rest.is_empty() {
        let (length, units) = rest.split_at_checked(size)?;
        let length = length.iter().fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
        let (unit, after) = units.split_at_checked(length)?;
        if let Some(header) = unit.first() {
            look(*header);
        }
        rest = after;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(packet: &[u8], framing: Framing, referenced: bool) {
        assert_eq!(is_referenced(packet, framing), referenced, "{packet:?}");
    }

    #[test]
    fn one_slice_that_is_referred_to_is_enough() {
        check(&[0, 0, 0, 1, 0x01, 0, 0, 0, 1, 0x41], Framing::Length(4), true);
        check(&[0, 2, 0x06, 9, 0, 1, 0x01], Framing::Length(2), false);
        check(&[0, 0, 1, 0x01, 7, 0, 0, 1, 0x01], Framing::StartCodes, false);
        check(&[0, 0, 0, 1, 0x09, 0, 0, 1, 0x65], Framing::StartCodes, true);
    }

    #[test]
    fn what_cannot_be_read_is_kept() {
        check(&[], Framing::Length(4), true);
        check(&[0, 0, 0, 9, 0x01], Framing::Length(4), true);
        check(&[0, 0, 0, 1, 0x06], Framing::Length(4), true);
    }

    #[test]
    fn a_key_frame_that_is_instantaneous() {
        assert!(is_instantaneous(&[0, 0, 1, 0x09, 0, 0, 1, 0x65], Framing::StartCodes));
        assert!(!is_instantaneous(&[0, 0, 0, 1, 0x41], Framing::Length(4)));
    }

    #[test]
    fn framing_is_in_the_configuration() {
        assert_eq!(Framing::of(&[1, 100, 0, 31, 0xFF, 0xE1]), Framing::Length(4));
        assert_eq!(Framing::of(&[0, 0, 0, 1, 0x67]), Framing::StartCodes);
        assert_eq!(Framing::of(&[]), Framing::StartCodes);
    }
}
