//! Which packet holds frame i, told from packets alone.
//!
//! Frame i is the i-th frame that a full decode puts out. Where every packet is one frame with a time of its own, that is the
//! i-th packet in order of time. Some packets give no frame all the same: those whose references lie before the start of the
//! file, and those of a damaged end. They are *in doubt*, and few: decoding them tells.

use std::ops::Range;

/// One packet of the video stream, in the order in which it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Presentation time in units of the stream.
    pub time: Option<i64>,
    /// Decoding can start here.
    pub key: bool,
    /// A frame comes of it: it is not hidden and no edit list cuts it out.
    pub shown: bool,
}

/// Why packets do not tell the frames; decoding all of them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotIndexable {
    /// A packet comes without a time.
    #[error("packets without presentation times")]
    NoTimes,
    /// Two frames have the same time.
    #[error("packets with equal presentation times")]
    EqualTimes,
    /// Nowhere to start.
    #[error("no key frame")]
    NoKey,
}

/// Frames of a video by packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    times: Vec<i64>,
    /// Packets at which decoding can start.
    keys: Vec<u32>,
    /// Packet of each frame, in order of presentation.
    frames: Vec<u32>,
    doubt: Vec<Range<u32>>,
    reordered: u32,
}

/// Depth beyond which no decoder reorders.
const MOST_REORDERED: usize = 16;

impl Index {
    /// Reads all packets of a stream. `cut`: the first key frame was not made to begin with. `damaged`: the file ends before
    /// it should.
    ///
    /// # Errors
    /// If they do not tell.
    pub fn of(packets: &[Packet], cut: bool, damaged: bool) -> Result<Self, NotIndexable> {
        let times: Option<Vec<i64>> = packets.iter().map(|packet| packet.time).collect();
        let times = times.ok_or(NotIndexable::NoTimes)?;
        let all = 0..packets.len() as u32;
        let keys: Vec<u32> = all.clone().filter(|at| packets[*at as usize].key).collect();
        let mut frames: Vec<u32> = all.filter(|at| packets[*at as usize].shown).collect();
        frames.sort_unstable_by_key(|at| times[*at as usize]);
        if frames.windows(2).any(|pair| times[pair[0] as usize] == times[pair[1] as usize]) {
            return Err(NotIndexable::EqualTimes);
        }
        if keys.is_empty() && !frames.is_empty() {
            return Err(NotIndexable::NoKey);
        }
        let reordered = reordered(&times);
        let mut index = Self { times, keys, frames, doubt: Vec::new(), reordered };
        index.doubt = index.head(cut).into_iter().chain(damaged.then(|| index.tail()).flatten()).collect();
        Ok(index)
    }

    /// Frames that there are, once [`Index::settle`] has been told of every doubt.
    pub fn len(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Whether nothing can be shown.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Packet of a frame.
    pub fn packet(&self, frame: u32) -> u32 {
        self.frames[frame as usize]
    }

    /// Presentation time of a packet.
    pub fn time(&self, packet: u32) -> i64 {
        self.times[packet as usize]
    }

    /// The last packet from which a packet can be decoded.
    pub fn start(&self, packet: u32) -> u32 {
        let before = self.keys.partition_point(|key| *key <= packet);
        let usable = self.keys[..before].iter().rev().find(|key| self.time(**key) <= self.time(packet));
        usable.copied().unwrap_or(0)
    }

    /// Packets to decode, all of a range from its first, to know which give frames.
    pub fn doubts(&self) -> &[Range<u32>] {
        &self.doubt
    }

    /// Says which packets of all ranges in doubt gave frames.
    pub fn settle(&mut self, gave: impl Fn(u32) -> bool) {
        let doubt = std::mem::take(&mut self.doubt);
        let certain = |packet: u32| !doubt.iter().any(|range| range.contains(&packet));
        self.frames.retain(|packet| certain(*packet) || gave(*packet));
    }

    /// How many frames decoded before another may be shown after it.
    pub fn reordered(&self) -> u32 {
        self.reordered
    }

    /// From the first packet to the last one that is shown before the first key frame, or decoded before it; to the second
    /// key frame where the first is not certain to give frames at once.
    fn head(&self, cut: bool) -> Option<Range<u32>> {
        let key = *self.keys.first()?;
        if cut {
            return Some(0..self.keys.get(1).copied().unwrap_or(self.times.len() as u32));
        }
        let early = |at: &u32| *at < key || self.time(*at) < self.time(key);
        let last = self.frames.iter().copied().filter(early).max()?;
        Some(0..last + 1)
    }

    /// From the last key frame to the end.
    fn tail(&self) -> Option<Range<u32>> {
        Some(*self.keys.last()?..self.times.len() as u32)
    }
}

fn reordered(times: &[i64]) -> u32 {
    let later = |at: usize| {
        let before = &times[at.saturating_sub(MOST_REORDERED)..at];
        before.iter().filter(|time| **time > times[at]).count()
    };
    (0..times.len()).map(later).max().unwrap_or(0) as u32
}

#[cfg(test)]
pub(crate) mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Packets in decoding order: `I2` a key frame shown at 2, `p` an inner one, `x` one that is cut out.
    pub(crate) fn packets(text: &str) -> Vec<Packet> {
        let packet = |word: &str| Packet {
            time: word[1..].parse().ok(),
            key: word.starts_with('I'),
            shown: !word.starts_with('x'),
        };
        text.split_whitespace().map(packet).collect()
    }

    fn bounds(index: &Index) -> Vec<(u32, u32)> {
        index.doubts().iter().map(|range| (range.start, range.end)).collect()
    }

    fn check(text: &str, damaged: bool, frames: &[u32], doubts: &[(u32, u32)]) {
        let index = Index::of(&packets(text), false, damaged).unwrap();
        assert_eq!((index.frames.as_slice(), bounds(&index)), (frames, doubts.to_vec()), "{text}");
    }

    #[test]
    fn frames_come_in_order_of_time() {
        check("I0 p3 p1 p2 I4 p5", false, &[0, 2, 3, 1, 4, 5], &[]);
    }

    #[test]
    fn what_is_cut_out_is_no_frame() {
        check("I0 x1 p2", false, &[0, 2], &[]);
    }

    #[test]
    fn frames_before_the_first_key_frame_are_in_doubt() {
        check("I2 p0 p1 p3", false, &[1, 2, 0, 3], &[(0, 3)]);
        check("p0 p1 I2 p3", false, &[0, 1, 2, 3], &[(0, 2)]);
    }

    #[test]
    fn a_start_that_was_cut_out_is_in_doubt_to_the_next_key_frame() {
        let index = Index::of(&packets("I2 p1 p3 I4 p5"), true, false).unwrap();
        assert_eq!(bounds(&index), [(0, 3)]);
    }

    #[test]
    fn a_damaged_end_is_in_doubt_from_its_key_frame_on() {
        check("I0 p1 I2 p3", true, &[0, 1, 2, 3], &[(2, 4)]);
    }

    #[test]
    fn what_gave_no_frame_is_none() {
        let mut index = Index::of(&packets("I2 p0 p1 p3"), false, false).unwrap();
        index.settle(|packet| packet == 0);
        assert_eq!((index.len(), index.packet(0), index.packet(1)), (2, 0, 3));
        assert!(index.doubts().is_empty());
    }

    #[test]
    fn decoding_starts_before_in_time_too() {
        let index = Index::of(&packets("I0 p1 I4 p2 p3 p5"), false, false).unwrap();
        let starts: Vec<u32> = (0..6).map(|packet| index.start(packet)).collect();
        assert_eq!(starts, [0, 0, 2, 0, 0, 2]);
    }

    #[test]
    fn packets_that_do_not_tell() {
        for (text, why) in [
            ("I0 p? p2", NotIndexable::NoTimes),
            ("I0 p1 p1", NotIndexable::EqualTimes),
            ("p0 p1", NotIndexable::NoKey),
        ] {
            assert_eq!(Index::of(&packets(text), false, false), Err(why), "{text}");
        }
    }

    #[test]
    fn the_depth_of_reordering() {
        for (text, depth) in [("I0 p1 p2", 0), ("I0 p2 p1", 1), ("I0 p4 p2 p1 p3", 2)] {
            assert_eq!(Index::of(&packets(text), false, false).unwrap().reordered(), depth, "{text}");
        }
    }

    #[test]
    fn nothing_is_a_video_without_frames() {
        assert!(Index::of(&[], true, true).unwrap().is_empty());
    }
}
