//! Pictures of a clip: size, fit and orientation.

use serde::{Deserialize, Serialize};

/// A picture's size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// Bytes of an RGB picture.
    pub fn bytes(self) -> usize {
        self.width as usize * self.height as usize * CHANNELS
    }

    fn turned(self) -> Self {
        Self { width: self.height, height: self.width }
    }
}

/// Red, green, blue.
pub const CHANNELS: usize = 3;

/// An RGB picture, 8 bits each, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its size.
    pub size: Size,
    /// Its pixels.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// A black one.
    pub fn black(size: Size) -> Self {
        Self { size, rgb: vec![0; size.bytes()] }
    }

    /// One pixel.
    pub fn pixel(&self, x: u32, y: u32) -> [u8; CHANNELS] {
        let at = (y as usize * self.size.width as usize + x as usize) * CHANNELS;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Makes a picture of what a function says of each column and row.
    pub fn of(size: Size, mut pixel: impl FnMut(u32, u32) -> [u8; CHANNELS]) -> Self {
        let mut rgb = Vec::with_capacity(size.bytes());
        for y in 0..size.height {
            for x in 0..size.width {
                rgb.extend(pixel(x, y));
            }
        }
        Self { size, rgb }
    }

    /// Puts a smaller picture into the middle.
    #[must_use]
    pub fn centre(mut self, inner: &Self) -> Self {
        let (left, top) =
            ((self.size.width - inner.size.width) / 2, (self.size.height - inner.size.height) / 2);
        let row = inner.size.width as usize * CHANNELS;
        for (y, pixels) in (top..).zip(inner.rgb.chunks_exact(row.max(1))) {
            let at = (y as usize * self.size.width as usize + left as usize) * CHANNELS;
            self.rgb[at..at + row].copy_from_slice(pixels);
        }
        self
    }
}

/// How a picture is brought to another shape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// All of it, whatever becomes of its proportions.
    #[default]
    Stretch,
    /// The largest part in the middle that has the shape.
    Crop,
    /// All of it in its proportions, with black beside it.
    Pad,
}

impl Fit {
    /// Pixels to take off a source: left, top, right, bottom. `pixel` is the source's.
    pub fn cropped(self, source: Size, pixel: Aspect, target: Size) -> [usize; 4] {
        if self != Self::Crop {
            return [0; 4];
        }
        let shape = (pixel.high(target.width), pixel.wide(target.height));
        let (width, height) = within(source, shape);
        let (x, y) = (source.width - width, source.height - height);
        let halves = |all: u32| (all as usize / 2, all as usize - all as usize / 2);
        let ((left, right), (top, bottom)) = (halves(x), halves(y));
        [left, top, right, bottom]
    }

    /// The size to scale to. `pixel` is the source's.
    pub fn scaled(self, source: Size, pixel: Aspect, target: Size) -> Size {
        if self != Self::Pad {
            return target;
        }
        let shape = (pixel.wide(source.width), pixel.high(source.height));
        let (width, height) = within(target, shape);
        Size { width, height }
    }
}

/// The largest rectangle in `outer` with the shape of one that has `columns` and `rows`.
fn within(outer: Size, (columns, rows): (u64, u64)) -> (u32, u32) {
    let wide = u64::from(outer.width) * rows;
    let high = u64::from(outer.height) * columns;
    let part = |whole: u64, of: u64| (whole / of.max(1)).max(1) as u32;
    if wide > high { (part(high, rows), outer.height) } else { (outer.width, part(wide, columns)) }
}

/// The shape in which one pixel is shown: its width in parts of its height. Those of old television are not square.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aspect {
    width: u16,
    height: u16,
}

impl Aspect {
    /// As wide as high.
    pub const SQUARE: Self = Self { width: 1, height: 1 };

    /// As a container or a frame says it; none where it says nothing, or nonsense.
    pub fn new(width: i32, height: i32) -> Option<Self> {
        let part = |value: i32| u16::try_from(value).ok().filter(|value| *value > 0);
        Some(Self { width: part(width)?, height: part(height)? })
    }

    fn wide(self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.width)
    }

    fn high(self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.height)
    }
}

/// One of the eight ways to lay a picture: first perhaps mirrored along its diagonal, then along its axes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Orientation {
    transposed: bool,
    mirrored: bool,
    upside_down: bool,
}

impl Orientation {
    /// Reads a display matrix of a container, rows `a b u`, `c d v`, `x y w`, as turns by quarters.
    pub fn of_matrix(matrix: &[i32; 9]) -> Self {
        let [x_to_x, x_to_y, _, y_to_x, y_to_y, ..] = matrix.map(i64::from);
        let transposed = x_to_y.abs() + y_to_x.abs() > x_to_x.abs() + y_to_y.abs();
        let (to_x, to_y) = if transposed { (y_to_x, x_to_y) } else { (x_to_x, y_to_y) };
        Self { transposed, mirrored: to_x < 0, upside_down: to_y < 0 }
    }

    /// The size before it is laid so.
    pub fn before(self, size: Size) -> Size {
        if self.transposed { size.turned() } else { size }
    }

    /// Lays a picture so.
    pub fn lay(self, picture: Picture) -> Picture {
        if self == Self::default() {
            return picture;
        }
        let size = self.before(picture.size);
        Picture::of(size, |x, y| {
            let x = if self.mirrored { size.width - 1 - x } else { x };
            let y = if self.upside_down { size.height - 1 - y } else { y };
            if self.transposed { picture.pixel(y, x) } else { picture.pixel(x, y) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: i32 = 1 << 16;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    /// Two columns, three rows: 0 1, 2 3, 4 5.
    fn check([a, b, c, d]: [i32; 4], expected: (u32, &[u8])) {
        let picture = Picture::of(size(2, 3), |x, y| [(2 * y + x) as u8; 3]);
        let laid = Orientation::of_matrix(&[a, b, 0, c, d, 0, 0, 0, 1 << 30]).lay(picture);
        let seen: Vec<u8> = laid.rgb.chunks_exact(3).map(|pixel| pixel[0]).collect();
        assert_eq!((laid.size.width, seen.as_slice()), expected);
    }

    #[test]
    fn quarters_of_a_turn() {
        check([ONE, 0, 0, ONE], (2, &[0, 1, 2, 3, 4, 5]));
        // Clockwise by 90, 180 and 270 degrees, as telephones write it.
        check([0, ONE, -ONE, 0], (3, &[4, 2, 0, 5, 3, 1]));
        check([-ONE, 0, 0, -ONE], (2, &[5, 4, 3, 2, 1, 0]));
        check([0, -ONE, ONE, 0], (3, &[1, 3, 5, 0, 2, 4]));
    }

    #[test]
    fn a_mirror() {
        check([-ONE, 0, 0, ONE], (2, &[1, 0, 3, 2, 5, 4]));
    }

    #[test]
    fn the_middle_is_cropped() {
        let square = Aspect::SQUARE;
        assert_eq!(Fit::Crop.cropped(size(1920, 1080), square, size(112, 112)), [420, 0, 420, 0]);
        assert_eq!(Fit::Crop.cropped(size(101, 200), square, size(100, 100)), [0, 49, 0, 50]);
        assert_eq!(Fit::Stretch.cropped(size(1920, 1080), square, size(112, 112)), [0; 4]);
    }

    #[test]
    fn pixels_that_are_not_square_count_as_they_are_shown() {
        // 720 x 576 shown as 1024 x 576.
        let wide = Aspect::new(64, 45).unwrap_or(Aspect::SQUARE);
        assert_eq!(Fit::Pad.scaled(size(720, 576), wide, size(128, 128)), size(128, 72));
        // 576 of 1024 columns, in pixels of the source.
        assert_eq!(Fit::Crop.cropped(size(720, 576), wide, size(112, 112)), [157, 0, 158, 0]);
        assert_eq!(Fit::Stretch.scaled(size(720, 576), wide, size(112, 112)), size(112, 112));
        assert_eq!([(0, 1), (1, 0), (-1, 1), (70_000, 1)].map(|(w, h)| Aspect::new(w, h)), [None; 4]);
        let narrow = Aspect::new(1, i32::from(u16::MAX)).unwrap_or(Aspect::SQUARE);
        assert_eq!(Fit::Crop.cropped(size(9, 9), narrow, size(16_384, 1)), [0, 4, 0, 4]);
    }

    #[test]
    fn everything_is_padded() {
        let square = Aspect::SQUARE;
        assert_eq!(Fit::Pad.scaled(size(1920, 1080), square, size(112, 112)), size(112, 63));
        assert_eq!(Fit::Pad.scaled(size(1, 4000), square, size(112, 112)), size(1, 112));
        let inner = Picture { size: size(2, 1), rgb: vec![9; 6] };
        let padded = Picture::black(size(2, 3)).centre(&inner);
        assert_eq!(padded.rgb, [[0; 6], [9; 6], [0; 6]].concat());
    }
}
