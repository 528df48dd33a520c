//! Which frames of a video a clip shows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::random::Draws;

/// How frames are chosen among all that a full decode puts out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// Evenly from the first frame to the last: `linspace(0, total - 1, frames)`, rounded down.
    Uniform,
    /// The middle of each of `frames` segments of equal length.
    Segments,
    /// Every n-th frame from the first on; the last is repeated where the video ends too early.
    Stride(u32),
    /// One frame of each of `frames` segments, drawn.
    Random,
    /// These frames, in this order; duplicates are allowed.
    Explicit(Vec<u32>),
}

/// Why frames cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// Nothing can be decoded.
    #[error("the video has no frames")]
    NoFrames,
    /// A frame beyond the end was asked for.
    #[error("frame {index} was asked for; the video has {total} frames")]
    Beyond {
        /// The frame.
        index: u32,
        /// Frames that there are.
        total: u32,
    },
    /// A text that says no selection.
    #[error("`{0}` is no selection; write uniform, segments, random, stride:N or frames such as 0,15,30")]
    Unknown(String),
}

impl Selection {
    /// Chooses `frames` of `total`; `draws` is used by [`Selection::Random`] alone.
    ///
    /// # Errors
    /// If there are no frames, or a frame is named that does not exist.
    pub fn choose(&self, frames: u32, total: u32, draws: &mut Draws) -> Result<Vec<u32>, SelectionError> {
        let last = total.checked_sub(1).ok_or(SelectionError::NoFrames)?;
        let segment = |i: u32| (bound(i, frames, total), bound(i + 1, frames, total));
        Ok(match self {
            Self::Uniform if frames == 1 => vec![0],
            Self::Uniform => (0..frames).map(|i| bound(i, frames - 1, last)).collect(),
            Self::Segments => (0..frames).map(|i| middle(segment(i)).min(last)).collect(),
            Self::Stride(step) => (0..frames).map(|i| i.saturating_mul(*step).min(last)).collect(),
            Self::Random => (0..frames).map(|i| drawn(segment(i), draws).min(last)).collect(),
            Self::Explicit(indices) => return within(indices, total),
        })
    }

    /// How many frames a clip has where `frames` are asked for.
    pub fn count(&self, frames: u32) -> u32 {
        if let Self::Explicit(indices) = self { indices.len() as u32 } else { frames }
    }
}

/// `total * i / parts`, rounded down.
fn bound(i: u32, parts: u32, total: u32) -> u32 {
    (u64::from(i) * u64::from(total) / u64::from(parts)) as u32
}

fn middle((start, end): (u32, u32)) -> u32 {
    start + end.saturating_sub(start + 1).div_ceil(2)
}

fn drawn((start, end): (u32, u32), draws: &mut Draws) -> u32 {
    start + draws.below(end.saturating_sub(start).max(1))
}

fn within(indices: &[u32], total: u32) -> Result<Vec<u32>, SelectionError> {
    match indices.iter().find(|index| **index >= total) {
        Some(index) => Err(SelectionError::Beyond { index: *index, total }),
        None => Ok(indices.to_vec()),
    }
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let unknown = || SelectionError::Unknown(text.to_owned());
        if let Some(step) = text.strip_prefix("stride:") {
            let step: u32 = step.parse().map_err(|_| unknown())?;
            return if step == 0 { Err(unknown()) } else { Ok(Self::Stride(step)) };
        }
        match text {
            "uniform" => Ok(Self::Uniform),
            "segments" => Ok(Self::Segments),
            "random" => Ok(Self::Random),
            _ => text
                .split(',')
                .map(|word| word.trim().parse().map_err(|_| unknown()))
                .collect::<Result<_, _>>()
                .map(Self::Explicit),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Segments => f.write_str("segments"),
            Self::Random => f.write_str("random"),
            Self::Stride(step) => write!(f, "stride:{step}"),
            Self::Explicit(indices) => {
                let words: Vec<_> = indices.iter().map(u32::to_string).collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::random::Key;

    fn check(text: &str, frames: u32, total: u32, expected: &[u32]) {
        let selection: Selection = text.parse().unwrap();
        assert_eq!(selection.to_string(), text);
        let mut draws = Key::of("a.mp4", 0, 0).draws("frames");
        assert_eq!(selection.choose(frames, total, &mut draws).unwrap(), expected, "{text} of {total}");
    }

    #[test]
    fn uniform_is_as_numpys_linspace() {
        check("uniform", 6, 300, &[0, 59, 119, 179, 239, 299]);
        check("uniform", 1, 300, &[0]);
        check("uniform", 4, 2, &[0, 0, 0, 1]);
    }

    #[test]
    fn segments_are_shown_by_their_middles() {
        check("segments", 3, 9, &[1, 4, 7]);
        check("segments", 2, 4, &[1, 3]);
        check("segments", 3, 1, &[0, 0, 0]);
    }

    #[test]
    fn a_stride_stops_at_the_end() {
        check("stride:4", 4, 10, &[0, 4, 8, 9]);
    }

    #[test]
    fn named_frames_keep_their_order() {
        check("7,0,7", 6, 10, &[7, 0, 7]);
        let mut draws = Key::of("", 0, 0).draws("frames");
        let error = Selection::Explicit(vec![10]).choose(6, 10, &mut draws).unwrap_err();
        assert_eq!(error.to_string(), "frame 10 was asked for; the video has 10 frames");
    }

    #[test]
    fn random_takes_one_of_each_segment_and_the_same_each_time() {
        let pick = || {
            let mut draws = Key::of("a.mp4", 1, 7).draws("frames");
            Selection::Random.choose(5, 100, &mut draws).unwrap()
        };
        assert_eq!(pick(), pick());
        for (i, frame) in pick().into_iter().enumerate() {
            assert_eq!(frame as usize / 20, i);
        }
    }

    #[test]
    fn no_frames_is_an_error() {
        let mut draws = Key::of("", 0, 0).draws("frames");
        assert_eq!(Selection::Uniform.choose(6, 0, &mut draws), Err(SelectionError::NoFrames));
    }

    #[test]
    fn other_words_are_no_selection() {
        for text in ["", "stride:0", "stride:x", "some", "1,x"] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }
}
