//! An amount of memory.

use serde::{Deserialize, Serialize};

/// Bytes of memory, printed with binary prefixes (1 KB = 1024 bytes), as `free -h` and `nvidia-smi` count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// One binary kilobyte.
    pub const KB: u64 = 1 << 10;
    /// One binary megabyte.
    pub const MB: u64 = 1 << 20;
    /// One binary gigabyte.
    pub const GB: u64 = 1 << 30;

    /// A signed amount as text, with its sign: `+16.5 MB`, `-2 KB`.
    pub fn signed(bytes: f64) -> String {
        let sign = if bytes < 0.0 { '-' } else { '+' };
        format!("{sign}{}", Self(bytes.abs().round() as u64))
    }
}

/// A text is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotASize;

impl std::fmt::Display for NotASize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a size; write for example 4GB or 800MB")
    }
}

impl std::error::Error for NotASize {}

impl std::str::FromStr for Bytes {
    type Err = NotASize;

    /// Reads `50GB`, `1.5 GiB`, `800M` or `1048576`: above 0, with binary prefixes with or without the `i`.
    fn from_str(text: &str) -> Result<Self, NotASize> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: f64 = number.parse().map_err(|_| NotASize)?;
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "kib" => Self::KB,
            "m" | "mb" | "mib" => Self::MB,
            "g" | "gb" | "gib" => Self::GB,
            "t" | "tb" | "tib" => 1024 * Self::GB,
            _ => return Err(NotASize),
        };
        let bytes = number * unit as f64;
        // 2^63 bytes are more than any machine has and still exact enough as a float.
        if (1.0..9.2e18).contains(&bytes) { Ok(Self(bytes as u64)) } else { Err(NotASize) }
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit, name) = match self.0 {
            0..Self::KB => return f.pad(&format!("{} B", self.0)),
            Self::KB..Self::MB => (Self::KB, "KB"),
            Self::MB..Self::GB => (Self::MB, "MB"),
            _ => (Self::GB, "GB"),
        };
        let value = self.0 as f64 / unit as f64;
        // Three significant digits: 1.50 GB, 16.5 MB, 812 MB.
        let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        f.pad(&format!("{value:.digits$} {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: u64, text: &str) {
        assert_eq!(Bytes(bytes).to_string(), text);
    }

    #[test]
    fn three_significant_digits_with_binary_prefixes() {
        check(0, "0 B");
        check(1023, "1023 B");
        check(1024, "1.00 KB");
        check(17_301_504, "16.5 MB");
        check(812 * Bytes::MB, "812 MB");
        check(1_610_612_736, "1.50 GB");
        check(u64::MAX, "17179869184 GB");
    }

    #[test]
    fn sizes_are_read_with_binary_prefixes() {
        let read = |text: &str| text.parse().map(|Bytes(bytes)| bytes);
        assert_eq!(read("50GB"), Ok(50 << 30));
        assert_eq!(read("1.5 GiB"), Ok(3 << 29));
        assert_eq!(read("800m"), Ok(800 << 20));
        assert_eq!(read("1048576"), Ok(1 << 20));
        for text in ["", "GB", "-1GB", "5XB", "0", "1e400", "99999999999TB", "1.2.3GB", "NaN"] {
            assert_eq!(read(text), Err(NotASize), "{text}");
        }
    }

    #[test]
    fn a_change_carries_its_sign() {
        assert_eq!(Bytes::signed(17_301_504.0), "+16.5 MB");
        assert_eq!(Bytes::signed(-2048.0), "-2.00 KB");
    }
}
