//! What reading all packets of a video has told, as it is kept for the next time.

use serde::{Deserialize, Serialize};

use crate::index::{Index, NotIndexable, Packet};

/// Another layout gets another number: what was kept before is not read any more.
pub const VERSION: u32 = 1;

/// What is known of a video.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Its packets tell the frames.
    Packets(Packets),
    /// They do not, and everything has been decoded.
    Whole {
        /// Why they do not.
        why: String,
        /// Frames that came.
        total: u32,
    },
}

/// All packets of a video stream, in decoding order. Numbers that grow are kept as steps, which are short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    cut: bool,
    damaged: bool,
    times: Vec<i64>,
    keys: Vec<u32>,
    hidden: Vec<u32>,
    /// Those in doubt that gave a frame.
    gave: Vec<u32>,
    places: Vec<i64>,
}

impl Packets {
    /// Of the packets and where each begins in the file, as [`Index::of`] takes them; `None` where one has no time. `gave`: the
    /// packets in doubt that gave a frame.
    pub fn of(
        packets: &[Packet],
        places: &[i64],
        [cut, damaged]: [bool; 2],
        gave: impl IntoIterator<Item = u32>,
    ) -> Option<Self> {
        let times: Option<Vec<i64>> = packets.iter().map(|packet| packet.time).collect();
        let such = |is: &dyn Fn(&Packet) -> bool| {
            (0..).zip(packets).filter(|(_, packet)| is(packet)).map(|(at, _)| at).collect()
        };
        let mut gave: Vec<u32> = gave.into_iter().collect();
        gave.sort_unstable();
        Some(Self {
            cut,
            damaged,
            times: steps(&times?),
            keys: such(&|packet| packet.key),
            hidden: such(&|packet| !packet.shown),
            gave,
            places: steps(places),
        })
    }

    /// The frames that they tell.
    ///
    /// # Errors
    /// If they do not.
    pub fn index(&self) -> Result<Index, NotIndexable> {
        let times = sums(&self.times);
        let packet = |(at, time): (u32, &i64)| Packet {
            time: Some(*time),
            key: self.keys.binary_search(&at).is_ok(),
            shown: self.hidden.binary_search(&at).is_err(),
        };
        let packets: Vec<Packet> = (0..).zip(&times).map(packet).collect();
        let mut index = Index::of(&packets, self.cut, self.damaged)?;
        index.settle(|packet| self.gave.binary_search(&packet).is_ok());
        Ok(index)
    }

    /// Where each begins in the file, and when it is shown.
    pub fn places(&self) -> impl Iterator<Item = (i64, i64)> {
        sums(&self.places).into_iter().zip(sums(&self.times))
    }
}

fn steps(numbers: &[i64]) -> Vec<i64> {
    let before = std::iter::once(&0).chain(numbers);
    numbers.iter().zip(before).map(|(number, before)| number.wrapping_sub(*before)).collect()
}

fn sums(steps: &[i64]) -> Vec<i64> {
    let sum = |sum: &mut i64, step: &i64| {
        *sum = sum.wrapping_add(*step);
        Some(*sum)
    };
    steps.iter().scan(0, sum).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::index::tests::packets;

    #[test]
    fn an_index_comes_back() {
        let packets = packets("I2 p0 p1 x3 I9 p5");
        let mut index = Index::of(&packets, false, true).unwrap();
        index.settle(|packet| [1, 4, 5].contains(&packet));
        let places = [40, 10, 90, 120, 1 << 40, -1];
        let read = Packets::of(&packets, &places, [false, true], [5, 1, 4]).unwrap();
        assert_eq!(read.index().unwrap(), index);
        let expected: Vec<_> = places.into_iter().zip([2, 0, 1, 3, 9, 5]).collect();
        assert_eq!(read.places().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn without_times_there_is_nothing_to_keep() {
        assert_eq!(Packets::of(&packets("I0 p? p2"), &[0; 3], [false; 2], []), None);
    }
}
