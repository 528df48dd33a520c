//! An amount of memory.

use serde::{Deserialize, Serialize};

/// Bytes of memory, printed with binary prefixes (1 KB = 1024 bytes), as `free -h` and `nvidia-smi` count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    fn a_change_carries_its_sign() {
        assert_eq!(Bytes::signed(17_301_504.0), "+16.5 MB");
        assert_eq!(Bytes::signed(-2048.0), "-2.00 KB");
    }
}
