//! What to decode for the frames that are wanted: from the nearest key frames, forward only, each packet once.

use crate::index::Index;

/// Packets that are decoded in one go, from a key frame on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The key frame.
    pub start: u32,
    /// Presentation time of the key frame: what is shown earlier is of another segment.
    time: i64,
    /// Packets of the frames that are wanted, in decoding order, each once.
    pub targets: Vec<u32>,
}

/// What may be left out because no other frame refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// Nothing is known of single frames. What is shown before the key frame does not count for what is shown after.
    Leading,
    /// The codec marks the frames that others refer to (H.264).
    Unreferenced,
}

impl Segment {
    /// Last packet.
    pub fn end(&self) -> u32 {
        self.targets.last().copied().unwrap_or(self.start)
    }

    /// Goes on with the next one instead of starting anew there.
    pub fn absorb(&mut self, next: Self) {
        self.targets.extend(next.targets);
    }

    /// Whether a packet is shown before the key frame: what it refers to may not be there, and it is not wanted.
    pub fn is_leading(&self, index: &Index, packet: u32) -> bool {
        index.time(packet) < self.time
    }

    /// Whether a packet between start and end must be decoded; `referenced` is asked only where it decides.
    pub fn needs(
        &self,
        index: &Index,
        packet: u32,
        leaves: Leaves,
        referenced: impl FnOnce() -> bool,
    ) -> bool {
        let wanted = packet == self.start || self.targets.binary_search(&packet).is_ok();
        wanted
            || match leaves {
                Leaves::Leading => !self.is_leading(index, packet),
                Leaves::Unreferenced => referenced(),
            }
    }
}

/// The cheapest frame at most `within` frames away from each: the one with the fewest packets between its key frame and itself,
/// of equal ones the nearest, then the earlier.
pub fn snap(index: &Index, frames: &[u32], within: u32) -> Vec<u32> {
    let last = index.len().saturating_sub(1);
    let cheapest = |frame: u32| {
        let near = frame.saturating_sub(within)..=frame.saturating_add(within).min(last);
        near.min_by_key(|other| {
            let packet = index.packet(*other);
            (packet - index.start(packet), other.abs_diff(frame))
        })
    };
    frames.iter().map(|frame| cheapest(*frame).unwrap_or(*frame)).collect()
}

/// Plans the decoding of frames, in any order and with duplicates.
pub fn plan(index: &Index, frames: &[u32]) -> Vec<Segment> {
    let mut packets: Vec<u32> = frames.iter().map(|frame| index.packet(*frame)).collect();
    packets.sort_unstable();
    packets.dedup();
    // By start: a frame that is shown before a key frame is decoded after it, from an earlier one.
    packets.sort_by_key(|packet| index.start(*packet));
    let mut segments: Vec<Segment> = Vec::new();
    for packet in packets {
        let start = index.start(packet);
        match segments.last_mut() {
            // Going on costs nothing where the next key frame has been passed already, or comes next.
            Some(last) if start <= last.end() + 1 => {
                let at = last.targets.partition_point(|target| *target < packet);
                last.targets.insert(at, packet);
            }
            _ => segments.push(Segment { start, time: index.time(start), targets: vec![packet] }),
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::index::tests::packets;

    /// Open groups of pictures: 5 and 6 are decoded after the key frame that is shown at 7.
    const OPEN: &str = "I0 p3 p1 p2 p4 I7 p5 p6 p8 I9 p10 p11";

    fn check(text: &str, frames: &[u32], expected: &[(u32, &[u32])]) {
        let index = Index::of(&packets(text), false, false).unwrap();
        let planned: Vec<_> =
            plan(&index, frames).into_iter().map(|segment| (segment.start, segment.targets)).collect();
        let expected: Vec<_> = expected.iter().map(|(start, targets)| (*start, targets.to_vec())).collect();
        assert_eq!(planned, expected, "{frames:?}");
    }

    #[test]
    fn frames_of_one_group_share_a_start() {
        check(OPEN, &[2, 1], &[(0, &[2, 3])]);
        check(OPEN, &[1, 11, 1], &[(0, &[2]), (9, &[11])]);
    }

    #[test]
    fn a_frame_shown_before_its_key_frame_is_decoded_from_the_one_before() {
        check(OPEN, &[6], &[(0, &[7])]);
        check(OPEN, &[8], &[(5, &[8])]);
    }

    #[test]
    fn what_has_been_passed_is_not_decoded_again() {
        check(OPEN, &[6, 8], &[(0, &[7, 8])]);
        check(OPEN, &[8, 9], &[(5, &[8, 9])]);
    }

    #[test]
    fn frames_are_snapped_to_the_cheapest_nearby() {
        let index = Index::of(&packets("I0 p1 p2 p3 I4 p5 p6 p7"), false, false).unwrap();
        for (within, snapped) in [(0, [0, 2, 3, 7]), (1, [0, 1, 4, 6]), (2, [0, 0, 4, 5]), (99, [0, 0, 4, 4])]
        {
            assert_eq!(snap(&index, &[0, 2, 3, 7], within), snapped, "{within}");
        }
    }

    #[test]
    fn what_nothing_refers_to_is_left_out() {
        let index = Index::of(&packets(OPEN), false, false).unwrap();
        let segment = &plan(&index, &[8])[0];
        let needed = |leaves, referenced| -> Vec<u32> {
            (5..9).filter(|packet| segment.needs(&index, *packet, leaves, || referenced)).collect()
        };
        assert_eq!(needed(Leaves::Leading, true), [5, 8]);
        assert_eq!(needed(Leaves::Unreferenced, false), [5, 8]);
        assert_eq!(needed(Leaves::Unreferenced, true), [5, 6, 7, 8]);
    }
}
