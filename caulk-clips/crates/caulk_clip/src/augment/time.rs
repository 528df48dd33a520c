//! Frames shifted or repeated.

use super::operation::Operation;
use crate::random::Draws;

/// One frame in so many is replaced by the one before.
const DROPPED: u32 = 8;

/// Changes which frames a clip shows.
pub fn shift_frames(operation: Operation, frames: &mut [u32], total: u32, draws: &mut Draws) {
    match operation {
        Operation::TemporalJitter => jitter(frames, total, draws),
        Operation::FrameDrop => drop(frames, draws),
        _ => {}
    }
}

/// Shifts each by up to a quarter of the mean distance, and of the shortest, so that they stay in order.
fn jitter(frames: &mut [u32], total: u32, draws: &mut Draws) {
    let mean = total / (frames.len() as u32).max(1);
    let shortest = frames.windows(2).map(|pair| pair[0].abs_diff(pair[1])).min();
    let reach = (mean.min(shortest.unwrap_or(mean)) / 4) as i32;
    for frame in frames {
        let shifted = i64::from(*frame) + i64::from(draws.between(-reach, reach));
        *frame = shifted.clamp(0, i64::from(total.saturating_sub(1))) as u32;
    }
}

fn drop(frames: &mut [u32], draws: &mut Draws) {
    for at in 1..frames.len() {
        if draws.below(DROPPED) == 0 {
            frames[at] = frames[at - 1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    #[test]
    fn shifted_frames_stay_in_the_video_and_in_order() {
        for path in ["a", "b", "c", "d"] {
            let mut frames = vec![0, 33, 66, 99];
            jitter(&mut frames, 100, &mut Key::of(path, 1, 0).draws("x"));
            assert!(frames.is_sorted() && frames[3] < 100, "{frames:?}");
        }
    }

    #[test]
    fn frames_beside_each_other_stay_in_order() {
        for path in ["a", "b", "c", "d"] {
            let mut frames = vec![0, 1, 2, 40, 50];
            jitter(&mut frames, 200, &mut Key::of(path, 1, 0).draws("x"));
            assert_eq!(frames, [0, 1, 2, 40, 50]);
        }
    }

    #[test]
    fn a_dropped_frame_repeats_the_one_before() {
        let mut frames: Vec<u32> = (0..100).collect();
        drop(&mut frames, &mut Key::of("a", 1, 0).draws("x"));
        let repeated = frames.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((1..40).contains(&repeated), "{repeated}");
    }
}
