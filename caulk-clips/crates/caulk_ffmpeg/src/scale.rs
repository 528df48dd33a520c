//! Frames to RGB pictures of the size that is wanted, in one step from the decoder's planes.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use caulk_clip::picture::{Aspect, CHANNELS, Fit, Orientation, Picture, Size};
use ffmpeg_sys_next as ffmpeg;

use crate::decoder::Frame;
use crate::error::DecodeError;
use crate::input::Input;

/// The same bytes on every processor: each source pixel counts by its area, sums are rounded, not cut.
const FLAGS: c_int =
    ffmpeg::SWS_AREA | ffmpeg::SWS_ACCURATE_RND | ffmpeg::SWS_BITEXACT | ffmpeg::SWS_FULL_CHR_H_INT;
/// The scaler's fast paths write whole vectors, beyond a row's end.
const ALIGN: usize = 64;
/// Contrast and saturation as they are, in units of 2^-16.
const ONE: c_int = 1 << 16;

/// What pictures are to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Size after turning; the stream's own where there is none.
    pub size: Option<Size>,
    /// How to get there.
    pub fit: Fit,
}

/// Brings frames to a target. Keeps what it has worked out for as long as frames look alike.
#[derive(Debug)]
pub(crate) struct Scaler {
    target: Target,
    orientation: Orientation,
    /// What the container says, which comes before what a frame does.
    pixel: Option<Aspect>,
    ready: Option<(Shape, NonNull<ffmpeg::SwsContext>)>,
}

/// What the scaler's tables depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    source: Size,
    scaled: Size,
    format: c_int,
    matrix: c_int,
    full_range: bool,
}

impl Scaler {
    pub(crate) fn new(target: Target, input: &Input) -> Self {
        Self { target, orientation: input.orientation(), pixel: input.pixel(), ready: None }
    }

    /// The picture of a frame; the frame may be narrowed.
    pub(crate) fn picture(&mut self, frame: &mut Frame) -> Result<Picture, DecodeError> {
        let whole = size(frame)?;
        let target = self.target.size.map_or(whole, |size| self.orientation.before(size));
        let said = frame.get().sample_aspect_ratio;
        let pixel = self.pixel.or_else(|| Aspect::new(said.num, said.den)).unwrap_or(Aspect::SQUARE);
        let cut = self.target.fit.cropped(whole, pixel, target);
        if cut != [0; 4] && !frame.crop(cut) {
            return Err(DecodeError::Scale);
        }
        let scaled = self.scaled(frame, self.target.fit.scaled(whole, pixel, target))?;
        let picture = if scaled.size == target { scaled } else { Picture::black(target).centre(&scaled) };
        Ok(self.orientation.lay(picture))
    }

    fn scaled(&mut self, frame: &Frame, scaled: Size) -> Result<Picture, DecodeError> {
        let source = size(frame)?;
        let (matrix, full_range) = colors(frame.get());
        let shape = Shape { source, scaled, format: frame.get().format, matrix, full_range };
        let context = self.prepare(shape)?;
        let stride = (scaled.width as usize * CHANNELS).next_multiple_of(ALIGN);
        let mut rows = vec![0_u8; stride * scaled.height as usize + ALIGN];
        // FFmpeg reads four planes, whether a format has them or not.
        let planes = [rows.as_mut_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut()];
        let strides = [stride as c_int, 0, 0, 0];
        let (data, linesize) = (&frame.get().data, &frame.get().linesize);
        // SAFETY: the context is for pictures of this size and format; the rows have room for the scaled one.
        let height = unsafe {
            ffmpeg::sws_scale(
                context.as_ptr(),
                data.as_ptr().cast(),
                linesize.as_ptr(),
                0,
                source.height as c_int,
                planes.as_ptr(),
                strides.as_ptr(),
            )
        };
        if height != scaled.height as c_int {
            return Err(DecodeError::Scale);
        }
        let row = scaled.width as usize * CHANNELS;
        // What is behind the last row may be as long as a row.
        let lines = rows.chunks_exact(stride).take(scaled.height as usize);
        let rgb = lines.flat_map(|line| &line[..row]).copied().collect();
        Ok(Picture { size: scaled, rgb })
    }

    fn prepare(&mut self, shape: Shape) -> Result<NonNull<ffmpeg::SwsContext>, DecodeError> {
        if let Some((known, context)) = self.ready
            && known == shape
        {
            return Ok(context);
        }
        self.release();
        let context = open(shape)?;
        self.ready = Some((shape, context));
        Ok(context)
    }

    fn release(&mut self) {
        if let Some((_, context)) = self.ready.take() {
            // SAFETY: made by `open`, and nobody has it any more.
            unsafe { ffmpeg::sws_freeContext(context.as_ptr()) };
        }
    }
}

impl Drop for Scaler {
    fn drop(&mut self) {
        self.release();
    }
}

fn open(shape: Shape) -> Result<NonNull<ffmpeg::SwsContext>, DecodeError> {
    let side = |value: u32| value as c_int;
    // SAFETY: a format that a decoder put out is one of the enumeration.
    let format = unsafe { std::mem::transmute::<c_int, ffmpeg::AVPixelFormat>(shape.format) };
    // SAFETY: sizes are positive; without filters and parameters.
    let context = unsafe {
        ffmpeg::sws_getContext(
            side(shape.source.width),
            side(shape.source.height),
            format,
            side(shape.scaled.width),
            side(shape.scaled.height),
            ffmpeg::AVPixelFormat::AV_PIX_FMT_RGB24,
            FLAGS,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null(),
        )
    };
    let context = NonNull::new(context).ok_or(DecodeError::Scale)?;
    // SAFETY: gives a table of FFmpeg's own for any number.
    let from = unsafe { ffmpeg::sws_getCoefficients(shape.matrix) };
    // SAFETY: as above.
    let to = unsafe { ffmpeg::sws_getCoefficients(ffmpeg::SWS_CS_DEFAULT) };
    // SAFETY: the context is new and both tables live for ever. Sources in RGB have no matrix: it refuses, rightly.
    unsafe {
        ffmpeg::sws_setColorspaceDetails(context.as_ptr(), from, shape.full_range.into(), to, 1, 0, ONE, ONE)
    };
    Ok(context)
}

fn size(frame: &Frame) -> Result<Size, DecodeError> {
    let frame = frame.get();
    match (u32::try_from(frame.width), u32::try_from(frame.height)) {
        (Ok(width @ 1..), Ok(height @ 1..)) if !frame.data[0].is_null() => Ok(Size { width, height }),
        _ => Err(DecodeError::Scale),
    }
}

/// Matrix and range as the stream has them; BT.601, limited, where it says nothing, as FFmpeg itself takes it.
fn colors(frame: &ffmpeg::AVFrame) -> (c_int, bool) {
    use ffmpeg::AVPixelFormat as Format;
    let full = frame.color_range == ffmpeg::AVColorRange::AVCOL_RANGE_JPEG;
    let by_format = [
        Format::AV_PIX_FMT_YUVJ420P,
        Format::AV_PIX_FMT_YUVJ422P,
        Format::AV_PIX_FMT_YUVJ444P,
        Format::AV_PIX_FMT_YUVJ440P,
        Format::AV_PIX_FMT_YUVJ411P,
    ];
    (frame.colorspace as c_int, full || by_format.iter().any(|format| *format as c_int == frame.format))
}
