//! How much memory decoding a video may take, told before it begins.
//!
//! A decoder keeps the frames that others may refer to or that wait to be shown, at most so many as codec and level allow,
//! and the one at work.

/// What is known of a stream before the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// Its codec.
    pub codec: Codec,
    /// Columns of a coded frame.
    pub width: u64,
    /// Rows of a coded frame.
    pub height: u64,
    /// `level_idc` or the like.
    pub level: Option<u32>,
    /// `profile_idc` or the like.
    pub profile: Option<u32>,
}

/// Codecs by how many frames they keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// H.264.
    H264,
    /// HEVC, H.265.
    Hevc,
    /// VP8, VP9: eight references.
    Vp,
    /// AV1: eight references, and what is shown with its grain.
    Av1,
    /// Two references, or none.
    Other,
}

/// A video that would take too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "decoding {width}x{height} may take {} MB, more than the {} MB for one video: more memory, or fewer jobs, give it more",
    need / MEGABYTE,
    limit / MEGABYTE
)]
pub struct TooLarge {
    /// Columns.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Bytes that it may take.
    pub need: u64,
    /// Bytes that there are.
    pub limit: u64,
}

/// Pictures that would take too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{frames} pictures of {} KB each, and a copy, are more than the {} MB for one video: more memory, or fewer jobs, give it \
     more",
    bytes.div_ceil(1000),
    limit / MEGABYTE
)]
pub struct TooManyPictures {
    /// How many.
    pub frames: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// Bytes that there are.
    pub limit: u64,
}

const MEGABYTE: u64 = 1_000_000;
/// What a worker takes beside what decoding may take, in bytes: the program itself, packets' times, pictures, clips.
pub const BESIDE: u64 = 64 * MEGABYTE;
/// Frames at work beside those kept: one decoded, one handed out.
const AT_WORK: u64 = 2;
/// Rows and columns around a frame, into which motion vectors may point.
const EDGE: u64 = 160;
/// Packets, tables of the decoder, one row of the scaler.
const FIXED: u64 = 8 * MEGABYTE;
const MOST_KEPT: u64 = 16;

/// Pixels that a decoder may be given per frame, if it then stays below `limit` bytes.
///
/// # Errors
/// If this stream would take more.
pub fn admit(stream: &Admission, limit: u64) -> Result<i64, TooLarge> {
    let need = bound(stream);
    if need > limit {
        return Err(TooLarge { width: stream.width, height: stream.height, need, limit });
    }
    // A stream whose frames grow is stopped where they reach twice what has been admitted, edges included.
    let pixels = with_edges(stream.width).saturating_mul(with_edges(stream.height));
    Ok(i64::try_from(pixels.saturating_mul(2)).unwrap_or(i64::MAX))
}

/// Whether so many pictures stay below `limit` bytes: each is held, and copied once as it is varied or told.
///
/// # Errors
/// If they do not.
pub fn admit_pictures(frames: u64, bytes: u64, limit: u64) -> Result<(), TooManyPictures> {
    let need = frames.saturating_mul(bytes).saturating_mul(2);
    if need > limit { Err(TooManyPictures { frames, bytes, limit }) } else { Ok(()) }
}

/// Bytes that decoding a stream takes at most: frames kept, times what one takes with its edges.
pub fn bound(stream: &Admission) -> u64 {
    let pixels = with_edges(stream.width).saturating_mul(with_edges(stream.height));
    // Chroma is at half the resolution both ways in all but professional profiles.
    let frame = if stream.is_deep() { pixels.saturating_mul(4) } else { pixels.saturating_mul(3) / 2 };
    frame.saturating_mul(stream.kept() + AT_WORK).saturating_add(FIXED)
}

fn with_edges(side: u64) -> u64 {
    side.next_multiple_of(64).saturating_add(EDGE)
}

impl Admission {
    /// More than 8 bits, or more chroma.
    fn is_deep(&self) -> bool {
        match self.codec {
            Codec::H264 => self.profile.is_some_and(|profile| matches!(profile, 110 | 122 | 144 | 244)),
            Codec::Hevc => self.profile.is_some_and(|profile| profile >= 2),
            Codec::Vp => self.profile.is_some_and(|profile| profile >= 1),
            // Its profiles do not tell the depth.
            Codec::Av1 | Codec::Other => true,
        }
    }

    /// Frames that are kept, by the standards' limits on the decoded picture buffer.
    fn kept(&self) -> u64 {
        let blocks = self.width.div_ceil(16).saturating_mul(self.height.div_ceil(16)).max(1);
        match self.codec {
            Codec::H264 => {
                self.level.map_or(MOST_KEPT, |level| (buffer_blocks(level) / blocks).clamp(1, MOST_KEPT))
            }
            Codec::Hevc => self.level.map_or(MOST_KEPT, |level| {
                let (most, own) = (largest_picture(level), self.width.saturating_mul(self.height));
                // Equation A-2 of H.265.
                match own.saturating_mul(4) {
                    quarters if quarters <= most => 16,
                    quarters if quarters <= 2 * most => 12,
                    quarters if quarters <= 3 * most => 8,
                    _ => 6,
                }
            }),
            Codec::Vp => 8,
            Codec::Av1 => 9,
            Codec::Other => 3,
        }
    }
}

/// `MaxLumaPs` of H.265, table A.8, by `general_level_idc`.
fn largest_picture(level: u32) -> u64 {
    match level {
        0..=30 => 36_864,
        31..=60 => 122_880,
        61..=63 => 245_760,
        64..=90 => 552_960,
        91..=93 => 983_040,
        94..=123 => 2_228_224,
        124..=156 => 8_912_896,
        _ => 35_651_584,
    }
}

/// `MaxDpbMbs` of H.264, table A-1.
fn buffer_blocks(level: u32) -> u64 {
    match level {
        0..=10 => 396,
        11 => 900,
        12 | 13 | 20 => 2376,
        21 => 4752,
        22 | 30 => 8100,
        31 => 18_000,
        32 => 20_480,
        40 | 41 => 32_768,
        42 => 34_816,
        50 => 110_400,
        51 | 52 => 184_320,
        _ => 696_320,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL_HD: Admission =
        Admission { codec: Codec::H264, width: 1920, height: 1080, level: Some(40), profile: Some(100) };

    #[test]
    fn full_hd_takes_some_frames() {
        // 4 kept and 2 at work of 2080 x 1248 x 1.5 bytes, and what is fixed.
        assert_eq!(bound(&FULL_HD), 6 * 2080 * 1248 * 3 / 2 + FIXED);
    }

    #[test]
    fn what_is_not_known_is_taken_as_large() {
        assert!(bound(&Admission { level: None, ..FULL_HD }) > 2 * bound(&FULL_HD));
        assert!(bound(&Admission { profile: Some(110), ..FULL_HD }) > 2 * bound(&FULL_HD));
    }

    #[test]
    fn a_video_that_is_too_large_is_told_with_its_figures() {
        let error = admit(&Admission { width: 60_000, height: 60_000, ..FULL_HD }, 100 * MEGABYTE);
        let text = error.map_err(|error| error.to_string());
        assert_eq!(
            text,
            Err("decoding 60000x60000 may take 16311 MB, more than the 100 MB for one video: more memory, or fewer jobs, \
                 give it more"
                .into())
        );
    }

    #[test]
    fn pictures_take_their_bytes_twice() {
        assert_eq!(admit_pictures(6, 112 * 112 * 3, MEGABYTE), Ok(()));
        let error = admit_pictures(120, 1024 * 1024 * 3, 100 * MEGABYTE).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.starts_with("120 pictures of 3146 KB each")));
        assert!(admit_pictures(u64::MAX, u64::MAX, u64::MAX - 1).is_err());
    }

    #[test]
    fn hevc_keeps_what_its_level_allows() {
        let kept =
            |width, level| Admission { codec: Codec::Hevc, width, level: Some(level), ..FULL_HD }.kept();
        assert_eq!([kept(1920, 120), kept(1920, 123), kept(960, 120), kept(480, 120)], [6, 6, 12, 16]);
    }

    #[test]
    fn nonsense_does_not_overflow() {
        let huge = Admission { width: u64::MAX / 256, height: u64::MAX / 256, ..FULL_HD };
        assert!(admit(&huge, u64::MAX - 1).is_err());
    }
}
