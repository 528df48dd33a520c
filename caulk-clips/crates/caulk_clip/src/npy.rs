//! Heads of clip files. The pixels follow as they are: frames, rows, columns, channels.

use crate::picture::{CHANNELS, Size};

/// Bytes before the pixels in a `.npy` file: version 1.0, padded so that pixels begin at a multiple of 64.
pub fn npy_head(frames: usize, size: Size) -> Vec<u8> {
    const FIXED: usize = 10;
    let Size { width, height } = size;
    let mut text = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': ({frames}, {height}, {width}, {CHANNELS}), }}"
    );
    let length = (FIXED + text.len() + 1).next_multiple_of(64) - FIXED;
    text.push_str(&" ".repeat(length - 1 - text.len()));
    text.push('\n');
    [b"\x93NUMPY\x01\x00".as_slice(), &(length as u16).to_le_bytes(), text.as_bytes()].concat()
}

/// Bytes before the pixels in a `.safetensors` file with the one tensor `clip`.
pub fn safetensors_head(frames: usize, size: Size) -> Vec<u8> {
    let Size { width, height } = size;
    let bytes = frames * size.bytes();
    let mut text = format!(
        r#"{{"clip":{{"dtype":"U8","shape":[{frames},{height},{width},{CHANNELS}],"data_offsets":[0,{bytes}]}}}}"#
    );
    text.push_str(&" ".repeat(text.len().next_multiple_of(64) + 56 - text.len()));
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 112, height: 96 };

    #[test]
    fn pixels_begin_where_they_can_be_mapped() {
        for frames in [1, 6, 1_000_000] {
            assert_eq!(npy_head(frames, SIZE).len() % 64, 0);
            assert_eq!(safetensors_head(frames, SIZE).len() % 64, 0);
        }
    }

    #[test]
    fn heads_tell_the_shape() {
        let head = npy_head(6, SIZE);
        let text = String::from_utf8_lossy(&head[10..]);
        let expected = "{'descr': '|u1', 'fortran_order': False, 'shape': (6, 96, 112, 3), }";
        assert_eq!(text.trim_end(), expected);
        assert_eq!(usize::from(u16::from_le_bytes([head[8], head[9]])), head.len() - 10);
        let head = safetensors_head(6, SIZE);
        assert_eq!(u64::from_le_bytes(head[..8].try_into().unwrap_or_default()) as usize, head.len() - 8);
    }
}
