//! Sharpness and noise.

use crate::picture::{CHANNELS, Picture};
use crate::random::Draws;

/// Largest standard deviation of noise, in 16ths of a step of 255.
const MOST_NOISE: u32 = 8 * 16;

/// Binomial, in 16ths.
const KERNEL: [u32; 5] = [1, 4, 6, 4, 1];

/// Softens, or does not, by a binomial kernel of five, once or twice.
pub(super) fn blur(pictures: &mut [Picture], draws: &mut Draws) {
    let times = if draws.coin() { 1 + draws.below(2) } else { 0 };
    for picture in pictures {
        for _ in 0..times {
            *picture = soft(&soft(picture, (1, 0)), (0, 1));
        }
    }
}

/// One pass along a direction.
fn soft(picture: &Picture, (dx, dy): (i64, i64)) -> Picture {
    let (width, height) = (i64::from(picture.size.width), i64::from(picture.size.height));
    let at = |x: i64, y: i64| picture.pixel(x.clamp(0, width - 1) as u32, y.clamp(0, height - 1) as u32);
    Picture::of(picture.size, |x, y| {
        let pixels: [[u8; CHANNELS]; 5] = std::array::from_fn(|step| {
            let step = step as i64 - 2;
            at(i64::from(x) + step * dx, i64::from(y) + step * dy)
        });
        std::array::from_fn(|channel| {
            let sum: u32 =
                pixels.iter().zip(KERNEL).map(|(pixel, weight)| u32::from(pixel[channel]) * weight).sum();
            ((sum + 8) >> 4) as u8
        })
    })
}

/// Adds noise, each value's own.
pub(super) fn noise(pictures: &mut [Picture], draws: &mut Draws) {
    let deviation = draws.below(MOST_NOISE + 1) as i32;
    for value in pictures.iter_mut().flat_map(|picture| picture.rgb.iter_mut()) {
        let noisy = i32::from(*value) + ((deviation * normal(draws.bits()) + (1 << 11)) >> 12);
        *value = noisy.clamp(0, 255) as u8;
    }
}

/// Nearly normal with a standard deviation of 256: four bytes less their mean, 1.73 times.
fn normal(bits: u32) -> i32 {
    let sum: i32 = bits.to_le_bytes().iter().map(|byte| i32::from(*byte)).sum();
    // A byte deviates by 73.9, four by 147.8.
    (2 * (sum - 510) * 887) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Size;
    use crate::random::Key;

    #[test]
    fn noise_has_the_deviation_that_is_said() {
        let mut draws = Key::of("a", 1, 0).draws("noise");
        let drawn: Vec<f64> = (0..20_000).map(|_| f64::from(normal(draws.bits()))).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let deviation = (drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 20_000.0).sqrt();
        assert!(mean.abs() < 6.0 && (deviation - 256.0).abs() < 6.0, "{mean} {deviation}");
    }

    #[test]
    fn an_even_picture_stays_even_when_softened() {
        let size = Size { width: 3, height: 2 };
        let even = Picture { size, rgb: vec![200; size.bytes()] };
        assert_eq!(soft(&even, (1, 0)), even);
        assert_eq!(soft(&even, (0, 1)), even);
    }
}
