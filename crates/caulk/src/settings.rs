//! Values of options: sizes, boundaries.

use std::str::FromStr;
use std::time::Duration;

use caulk_core::Bytes;

/// `--budget`: memory that the user grants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Budget {
    /// So many bytes.
    Bytes(u64),
    /// A share of what there is, 0 to 1.
    Share(f64),
}

impl Budget {
    /// In bytes, where `available` bytes are all there is.
    pub(crate) fn of(self, available: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => (available as f64 * share) as u64,
        }
    }
}

/// A size in bytes, where a share would mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = ValueError;

    /// As [`Budget`], without shares.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.parse()? {
            Budget::Bytes(bytes) => Ok(Self(bytes)),
            Budget::Share(_) => Err(ValueError::Bytes),
        }
    }
}

/// `--fail-on`: growth per epoch, step or second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slope {
    pub(crate) bytes: f64,
    /// `epoch`, `step` or `second`.
    pub(crate) unit: &'static str,
}

impl FromStr for Slope {
    type Err = ValueError;

    /// `5MB/epoch`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (size, unit) = text.split_once('/').ok_or(ValueError::Slope)?;
        let unit = ["epoch", "step", "second"].into_iter().find(|known| *known == unit.trim());
        let size: Bytes = size.parse().map_err(|_| ValueError::Slope)?;
        Ok(Self { bytes: size.0 as f64, unit: unit.ok_or(ValueError::Slope)? })
    }
}

/// A share above nothing and at most all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl FromStr for Share {
    type Err = ValueError;

    /// `95%`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.parse()? {
            Budget::Share(share) => Ok(Self(share)),
            Budget::Bytes(_) => Err(ValueError::Share),
        }
    }
}

/// A number above 1: how many times as much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Factor(pub(crate) f64);

impl FromStr for Factor {
    type Err = ValueError;

    /// `3`, `1.5`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let factor = text.parse::<f64>().ok().filter(|factor| *factor > 1.0 && factor.is_finite());
        factor.map(Self).ok_or(ValueError::Factor)
    }
}

/// Largest number in a shape: more is a slip of the keyboard.
const LARGEST: u64 = 1_000_000;

/// Numbers from 1 joined by `x`.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let number = |part: &str| part.parse().ok().filter(|number| (1..=LARGEST).contains(number));
    text.to_ascii_lowercase().split('x').map(number).collect()
}

/// Width, height and frames of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VideoSize {
    width: u64,
    height: u64,
    frames: u64,
}

impl FromStr for VideoSize {
    type Err = ValueError;

    /// `1920x1080x300`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let [width, height, frames] = numbers(text).unwrap_or_default()[..] else {
            return Err(ValueError::Video);
        };
        Ok(Self { width, height, frames })
    }
}

impl From<VideoSize> for caulk_plan::Video {
    fn from(VideoSize { width, height, frames }: VideoSize) -> Self {
        Self { width, height, frames }
    }
}

/// Shape of one sample, and whether its elements are whole numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputShape {
    pub(crate) sizes: Vec<u64>,
    pub(crate) whole: bool,
}

impl FromStr for InputShape {
    type Err = ValueError;

    /// `3x224x224`, `512`, `i128` for token numbers.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (whole, sizes) = text.strip_prefix('i').map_or((false, text), |rest| (true, rest));
        Ok(Self { sizes: numbers(sizes).ok_or(ValueError::Shape)?, whole })
    }
}

/// Why a value of an option is not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("not a size; write for example 50GB, 800MB or 80%")]
    Size,
    #[error("not a size; write for example 4GB or 800MB")]
    Bytes,
    #[error("not a rate; write for example 5MB/epoch, 100KB/step or 1MB/second")]
    Slope,
    #[error("not a factor above 1; write for example 3 or 1.5")]
    Factor,
    #[error("not a video; write width x height x frames, for example 1920x1080x300")]
    Video,
    #[error("not a shape; write sizes of one sample from 1 to 1000000, for example 3x224x224")]
    Shape,
    #[error("a share must be above 0% and at most 100%")]
    Share,
    #[error("not a time; write for example 30s, 5min or 1h")]
    Time,
    #[error("not a boundary; write for example 30-seconds or 100-steps")]
    Boundary,
}

impl FromStr for Budget {
    type Err = ValueError;

    /// `50GB`, `1.5 GiB`, `800M`, `1048576`, `80%`. Prefixes are binary with or without the `i`, as everywhere in caulk.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text = text.trim();
        if let Some(number) = text.strip_suffix('%') {
            let share = number.trim().parse::<f64>().map_err(|_| ValueError::Size)? / 100.0;
            return if share > 0.0 && share <= 1.0 { Ok(Self::Share(share)) } else { Err(ValueError::Share) };
        }
        text.parse().map(|Bytes(bytes)| Self::Bytes(bytes)).map_err(|_| ValueError::Size)
    }
}

/// `--grace`, `--interval`: how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Duration);

impl FromStr for Wait {
    type Err = ValueError;

    /// `30s`, `90`, `5min`, `1h`: whole numbers above 0, a day at most.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: u64 = number.parse().map_err(|_| ValueError::Time)?;
        let unit = match unit.trim() {
            "" | "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => return Err(ValueError::Time),
        };
        let seconds = number.checked_mul(unit).filter(|seconds| (1..=86_400).contains(seconds));
        seconds.map(|seconds| Self(Duration::from_secs(seconds))).ok_or(ValueError::Time)
    }
}

/// `--boundary`: where to judge memory instead of at epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boundary {
    count: u32,
    unit: &'static str,
}

impl FromStr for Boundary {
    type Err = ValueError;

    /// `30-seconds`, `1-second`, `100-steps`.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (count, unit) = text.trim().split_once('-').ok_or(ValueError::Boundary)?;
        let count = count.parse().ok().filter(|count| *count > 0).ok_or(ValueError::Boundary)?;
        match unit {
            "second" | "seconds" => Ok(Self { count, unit: "s" }),
            "step" | "steps" => Ok(Self { count, unit: "steps" }),
            _ => Err(ValueError::Boundary),
        }
    }
}

impl Boundary {
    /// As the agent reads it from its settings: `boundary=30s`, `boundary=100steps`.
    pub(crate) fn setting(self) -> String {
        format!("boundary={}{}", self.count, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Result<Budget, ValueError>) {
        assert_eq!(text.parse(), *expected, "{text}");
    }

    #[test]
    fn sizes_are_binary() {
        check("50GB", &Ok(Budget::Bytes(50 << 30)));
        check("1.5 GiB", &Ok(Budget::Bytes(3 << 29)));
        check("800m", &Ok(Budget::Bytes(800 << 20)));
        check("1048576", &Ok(Budget::Bytes(1 << 20)));
        check("80%", &Ok(Budget::Share(0.8)));
        assert_eq!(Budget::Share(0.5).of(64 << 30), 32 << 30);
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "GB", "-1GB", "5XB", "0", "1e400", "99999999999TB", "1.2.3GB", "NaN"] {
            check(text, &Err(ValueError::Size));
        }
        check("0%", &Err(ValueError::Share));
        check("101%", &Err(ValueError::Share));
        check("NaN%", &Err(ValueError::Share));
    }

    #[test]
    fn a_grace_is_a_time() {
        let check = |text: &str, expected: Result<u64, ValueError>| {
            assert_eq!(text.parse::<Wait>().map(|grace| grace.0.as_secs()), expected, "{text}");
        };
        check("90", Ok(90));
        check("30s", Ok(30));
        check("5 min", Ok(300));
        check("1h", Ok(3600));
        for text in ["", "0", "-1s", "5x", "1.5s", "48h", "99999999999999999999h"] {
            check(text, Err(ValueError::Time));
        }
    }

    #[test]
    fn shares_and_factors() {
        assert_eq!("95%".parse(), Ok(Share(0.95)));
        assert_eq!("4GB".parse::<Share>(), Err(ValueError::Share));
        assert_eq!("1.5".parse(), Ok(Factor(1.5)));
        for text in ["1", "0", "-3", "NaN", "inf", "x", ""] {
            assert_eq!(text.parse::<Factor>(), Err(ValueError::Factor), "{text}");
        }
    }

    #[test]
    fn shapes_are_sizes_of_one_sample() {
        let shape = |text: &str| text.parse::<InputShape>().map(|shape| (shape.sizes, shape.whole));
        assert_eq!(shape("3x224x224"), Ok((vec![3, 224, 224], false)));
        assert_eq!(shape("i512"), Ok((vec![512], true)));
        for text in ["", "3x", "0x4", "-3", "3,4", "99999999", "i"] {
            assert_eq!(shape(text), Err(ValueError::Shape), "{text}");
        }
    }

    #[test]
    fn boundaries_are_seconds_or_steps() {
        assert_eq!("1-second".parse().map(Boundary::setting), Ok("boundary=1s".into()));
        assert_eq!("100-steps".parse().map(Boundary::setting), Ok("boundary=100steps".into()));
        for text in ["", "10", "0-steps", "-5-steps", "10-epochs", "x-steps"] {
            assert_eq!(text.parse::<Boundary>(), Err(ValueError::Boundary), "{text}");
        }
    }
}
