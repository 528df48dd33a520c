//! Colours: brighter or darker, more or less contrast, more or less saturated.

use crate::picture::{CHANNELS, Picture};
use crate::random::Draws;

/// As it is; factors are in units of 2^-12.
const ONE: i32 = 1 << 12;
/// Most that a factor departs from [`ONE`]: a fifth.
const REACH: i32 = 819;

/// Draws the three factors and applies them.
pub(super) fn jitter(pictures: &mut [Picture], draws: &mut Draws) {
    let mut factor = || ONE + draws.between(-REACH, REACH);
    let (brightness, contrast, saturation) = (factor(), factor(), factor());
    let middle = mean(pictures);
    for pixel in pictures.iter_mut().flat_map(|picture| picture.rgb.chunks_exact_mut(CHANNELS)) {
        let lit = |value: u8| around(i32::from(value), 0, brightness);
        let light =
            [lit(pixel[0]), lit(pixel[1]), lit(pixel[2])].map(|value| around(value, middle, contrast));
        let gray = luma(light);
        for (value, channel) in pixel.iter_mut().zip(light) {
            *value = around(channel, gray, saturation).clamp(0, 255) as u8;
        }
    }
}

/// Moves a value away from another, or towards it.
fn around(value: i32, middle: i32, factor: i32) -> i32 {
    middle + (((value - middle) * factor + ONE / 2) >> 12)
}

/// BT.601, in units of 2^-16.
fn luma([red, green, blue]: [i32; CHANNELS]) -> i32 {
    (19_595 * red + 38_470 * green + 7_471 * blue + (1 << 15)) >> 16
}

/// Mean luma of a clip: one for all frames, so that they do not flicker.
fn mean(pictures: &[Picture]) -> i32 {
    let pixels = pictures.iter().flat_map(|picture| picture.rgb.chunks_exact(CHANNELS));
    let (mut sum, mut count) = (0_i64, 0_i64);
    for pixel in pixels {
        sum += i64::from(luma([pixel[0].into(), pixel[1].into(), pixel[2].into()]));
        count += 1;
    }
    (sum / count.max(1)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Size;
    use crate::random::Key;

    #[test]
    fn black_stays_nearly_black_and_gray_gray() {
        let size = Size { width: 2, height: 1 };
        let mut pictures = [Picture { size, rgb: vec![100, 100, 100, 120, 120, 120] }];
        jitter(&mut pictures, &mut Key::of("a", 1, 0).draws("color"));
        for pixel in pictures[0].rgb.chunks(3) {
            assert!(pixel[0] == pixel[1] && pixel[1] == pixel[2], "{pixel:?}");
        }
    }

    #[test]
    fn a_factor_of_one_changes_nothing() {
        for value in 0..=255 {
            assert_eq!(around(value, 77, ONE), value);
        }
    }
}
