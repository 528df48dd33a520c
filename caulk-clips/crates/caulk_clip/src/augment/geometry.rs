//! Where pixels lie: mirrored, cropped, turned. Positions are in units of 2^-16 of a pixel.

use crate::picture::{CHANNELS, Picture};
use crate::random::Draws;

const ONE: i64 = 1 << 16;
/// Least side of a crop, in 256ths.
const LEAST: i32 = 179;
/// Largest turn, in 2^-16 of a radian: 15 degrees.
const MOST_TURNED: i32 = 17_157;

/// Exchanges left and right, or does not.
pub(super) fn flip(pictures: &mut [Picture], draws: &mut Draws) {
    if draws.coin() {
        for picture in pictures {
            let width = picture.size.width;
            *picture = Picture::of(picture.size, |x, y| picture.pixel(width - 1 - x, y));
        }
    }
}

/// Takes a part of the picture and brings it back to size.
pub(super) fn crop(pictures: &mut [Picture], draws: &mut Draws) {
    let part = i64::from(draws.between(LEAST, 256));
    let (left, top) = (i64::from(draws.below(1 << 16)), i64::from(draws.below(1 << 16)));
    for picture in pictures {
        let (width, height) = sides(picture);
        let start = |side: i64, share: i64| {
            side * (256 - part) / 256 * share + side * (256 - part) % 256 * share / 256
        };
        let (x0, y0) = (start(width, left), start(height, top));
        let scaled = |at: u32| (i64::from(at) * ONE + ONE / 2) * part / 256 - ONE / 2;
        *picture = Picture::of(picture.size, |x, y| sample(picture, x0 + scaled(x), y0 + scaled(y)));
    }
}

/// Turns around the middle. What comes in from outside repeats the edge.
pub(super) fn rotate(pictures: &mut [Picture], draws: &mut Draws) {
    let (sine, cosine) = circle(i64::from(draws.between(-MOST_TURNED, MOST_TURNED)));
    for picture in pictures {
        let (width, height) = sides(picture);
        let (middle_x, middle_y) = ((width - 1) * ONE / 2, (height - 1) * ONE / 2);
        *picture = Picture::of(picture.size, |x, y| {
            let (dx, dy) = (i64::from(x) * ONE - middle_x, i64::from(y) * ONE - middle_y);
            let turned_x = (dx * cosine + dy * sine) >> 16;
            let turned_y = (dy * cosine - dx * sine) >> 16;
            sample(picture, middle_x + turned_x, middle_y + turned_y)
        });
    }
}

fn sides(picture: &Picture) -> (i64, i64) {
    (picture.size.width.into(), picture.size.height.into())
}

/// Sine and cosine of a small angle, by their series: both in units of 2^-16.
fn circle(angle: i64) -> (i64, i64) {
    let square = (angle * angle) >> 16;
    let cube = (square * angle) >> 16;
    let fourth = (square * square) >> 16;
    let fifth = (fourth * angle) >> 16;
    (angle - cube / 6 + fifth / 120, ONE - square / 2 + fourth / 24)
}

/// The picture between its pixels, weighted by distance; beyond the edge the edge.
fn sample(picture: &Picture, x: i64, y: i64) -> [u8; CHANNELS] {
    let (width, height) = sides(picture);
    let (x, y) = (x.clamp(0, (width - 1) * ONE), y.clamp(0, (height - 1) * ONE));
    let (left, top) = (x >> 16, y >> 16);
    // Weights in 256ths.
    let (right_share, lower_share) = ((x & (ONE - 1)) >> 8, (y & (ONE - 1)) >> 8);
    let at = |x: i64, y: i64| picture.pixel(x.min(width - 1) as u32, y.min(height - 1) as u32);
    let corners = [at(left, top), at(left + 1, top), at(left, top + 1), at(left + 1, top + 1)];
    std::array::from_fn(|channel| {
        let values = corners.map(|pixel| i64::from(pixel[channel]));
        let upper = values[0] * (256 - right_share) + values[1] * right_share;
        let lower = values[2] * (256 - right_share) + values[3] * right_share;
        ((upper * (256 - lower_share) + lower * lower_share + (1 << 15)) >> 16) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Size;
    use crate::random::Key;

    fn ramp() -> Picture {
        Picture::of(Size { width: 9, height: 5 }, |x, y| [(x * 20) as u8, (y * 40) as u8, 7])
    }

    #[test]
    fn a_picture_sampled_at_its_pixels_is_itself() {
        let picture = ramp();
        let same = Picture::of(picture.size, |x, y| sample(&picture, i64::from(x) << 16, i64::from(y) << 16));
        assert_eq!(same, picture);
    }

    #[test]
    fn between_two_pixels_lies_their_mean() {
        assert_eq!(sample(&ramp(), ONE / 2, 0), [10, 0, 7]);
        assert_eq!(sample(&ramp(), -ONE, 99 * ONE), [0, 160, 7]);
    }

    #[test]
    fn sine_and_cosine_are_right_to_four_places() {
        for angle in [-MOST_TURNED, -5000, 0, 1234, MOST_TURNED] {
            let (sine, cosine) = circle(i64::from(angle));
            let radians = f64::from(angle) / 65536.0;
            assert!((sine as f64 / 65536.0 - radians.sin()).abs() < 1e-4);
            assert!((cosine as f64 / 65536.0 - radians.cos()).abs() < 1e-4);
        }
    }

    #[test]
    fn shapes_are_kept() {
        for operation in [flip, crop, rotate] {
            for path in ["a", "b", "c"] {
                let mut pictures = [ramp(), ramp()];
                operation(&mut pictures, &mut Key::of(path, 1, 0).draws("x"));
                assert_eq!(pictures[0], pictures[1]);
                assert_eq!(pictures[0].size, ramp().size);
                assert!(pictures[0].rgb.chunks(3).all(|pixel| pixel[2] == 7));
            }
        }
    }
}
