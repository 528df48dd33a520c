//! Values of options.

use std::str::FromStr;
use std::time::Duration;

/// `--timeout`: how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Duration);

/// Longest wait: a day.
const LONGEST: Duration = Duration::from_hours(24);

impl FromStr for Wait {
    type Err = String;

    /// Reads `30s`, `90` (seconds), `5min` or `1h`: a second at least, a day at most.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let time = text.parse().map(Duration::from_secs).or_else(|_| humantime::parse_duration(text));
        let time = time.ok().filter(|time| (Duration::from_secs(1)..=LONGEST).contains(time));
        time.map(Self).ok_or_else(|| "not a time; write for example 30s, 5min or 1h".into())
    }
}

#[test]
fn times() {
    let check = |text: &str, seconds: Option<u64>| {
        assert_eq!(text.parse::<Wait>().ok().map(|wait| wait.0.as_secs()), seconds, "{text}");
    };
    check("90", Some(90));
    check("30s", Some(30));
    check("5 min", Some(300));
    check("1h", Some(3600));
    for text in ["", "0", "-1s", "5x", "48h", "99999999999999999999h"] {
        check(text, None);
    }
}
