//! A decoder on one thread: packets in, frames out, each with the number of its packet.

use std::ffi::CStr;
use std::ptr::{self, NonNull};

use caulk_clip::memory::{self, Admission};
use ffmpeg_sys_next as ffmpeg;

use crate::error::{Code, DecodeError};
use crate::input::{Input, Packet};

/// An open decoder.
#[derive(Debug)]
pub(crate) struct Decoder {
    context: NonNull<ffmpeg::AVCodecContext>,
    frame: Frame,
}

impl Decoder {
    /// Opens the decoder of a stream unless what it may hold is above `limit` bytes. `reordered`: frames that may be
    /// decoded before another and shown after it.
    pub(crate) fn open(input: &Input, limit: u64, reordered: u32) -> Result<Self, DecodeError> {
        let parameters = input.parameters();
        let admitted = memory::admit(&admission(parameters), limit)?;
        // SAFETY: any codec id may be asked for.
        let codec = unsafe { ffmpeg::avcodec_find_decoder(parameters.codec_id) };
        if codec.is_null() {
            return Err(DecodeError::NoDecoder(name(parameters.codec_id)));
        }
        // SAFETY: the codec is one of FFmpeg's own.
        let context = unsafe { ffmpeg::avcodec_alloc_context3(codec) };
        let context = NonNull::new(context).ok_or(DecodeError::NoMemory)?;
        let mut decoder = Self { context, frame: Frame::new()? };
        // SAFETY: both are alive.
        let code = unsafe { ffmpeg::avcodec_parameters_to_context(context.as_ptr(), parameters) };
        check(code)?;
        let settings = decoder.settings();
        settings.thread_count = 1;
        // The same frames on every processor: older codecs leave it to the decoder how to round.
        settings.flags |= ffmpeg::AV_CODEC_FLAG_BITEXACT as i32;
        settings.max_pixels = admitted;
        // The depth that the packets show: a decoder that has to guess drops frames until it has guessed right.
        if settings.codec_id == ffmpeg::AVCodecID::AV_CODEC_ID_H264 {
            settings.has_b_frames = settings.has_b_frames.max(reordered as i32);
        }
        // SAFETY: the context is of this codec and not open yet.
        let code = unsafe { ffmpeg::avcodec_open2(context.as_ptr(), codec, ptr::null_mut()) };
        check(code)?;
        Ok(decoder)
    }

    fn settings(&mut self) -> &mut ffmpeg::AVCodecContext {
        // SAFETY: allocated by `open`, and borrowed mutably.
        unsafe { self.context.as_mut() }
    }

    /// Decodes a packet. One that cannot be decoded gives no frame; its error is among the messages.
    pub(crate) fn send(&mut self, packet: &Packet) {
        // SAFETY: both are alive. All frames have been taken out before.
        unsafe { ffmpeg::avcodec_send_packet(self.context.as_ptr(), packet.get()) };
    }

    /// Has the decoder put out what it holds back.
    pub(crate) fn drain(&mut self) {
        // SAFETY: the context is open.
        unsafe { ffmpeg::avcodec_send_packet(self.context.as_ptr(), ptr::null()) };
    }

    /// Makes it ready to start elsewhere.
    pub(crate) fn flush(&mut self) {
        // SAFETY: the context is open.
        unsafe { ffmpeg::avcodec_flush_buffers(self.context.as_ptr()) };
    }

    /// The next frame, if one is ready.
    pub(crate) fn receive(&mut self) -> Option<&mut Frame> {
        // SAFETY: the context is open; the frame is ours, and what it held is let go.
        let code = unsafe { ffmpeg::avcodec_receive_frame(self.context.as_ptr(), self.frame.0.as_ptr()) };
        (code >= 0).then_some(&mut self.frame)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let mut context = self.context.as_ptr();
        // SAFETY: allocated by `open`, freed here alone.
        unsafe { ffmpeg::avcodec_free_context(&raw mut context) };
    }
}

/// One decoded frame.
#[derive(Debug)]
pub(crate) struct Frame(NonNull<ffmpeg::AVFrame>);

impl Frame {
    fn new() -> Result<Self, DecodeError> {
        // SAFETY: no preconditions.
        let frame = unsafe { ffmpeg::av_frame_alloc() };
        NonNull::new(frame).map(Self).ok_or(DecodeError::NoMemory)
    }

    pub(crate) fn get(&self) -> &ffmpeg::AVFrame {
        // SAFETY: allocated by `new`.
        unsafe { self.0.as_ref() }
    }

    /// Number of the packet that it came of.
    pub(crate) fn number(&self) -> Option<u32> {
        u32::try_from(self.get().pts).ok()
    }

    /// Whether the decoder itself doubts it.
    pub(crate) fn is_doubtful(&self) -> bool {
        let frame = self.get();
        frame.decode_error_flags != 0 || frame.flags & ffmpeg::AV_FRAME_FLAG_CORRUPT != 0
    }

    /// Two fields may have come in two packets.
    pub(crate) fn is_interlaced(&self) -> bool {
        self.get().interlaced_frame != 0
    }

    /// Narrows it to a part, by pixels from each side: left, top, right, bottom.
    pub(crate) fn crop(&mut self, [left, top, right, bottom]: [usize; 4]) -> bool {
        // SAFETY: allocated by `new`, and borrowed mutably.
        let frame = unsafe { self.0.as_mut() };
        (frame.crop_left, frame.crop_top, frame.crop_right, frame.crop_bottom) = (left, top, right, bottom);
        // SAFETY: the frame holds a picture.
        unsafe {
            ffmpeg::av_frame_apply_cropping(self.0.as_ptr(), ffmpeg::AV_FRAME_CROP_UNALIGNED as i32) >= 0
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut frame = self.0.as_ptr();
        // SAFETY: allocated by `new`, freed here alone.
        unsafe { ffmpeg::av_frame_free(&raw mut frame) };
    }
}

fn check(code: i32) -> Result<(), DecodeError> {
    if code < 0 { Err(DecodeError::Decoder(Code(code))) } else { Ok(()) }
}

fn name(codec: ffmpeg::AVCodecID) -> String {
    // SAFETY: gives a text for every id.
    let name = unsafe { ffmpeg::avcodec_get_name(codec) };
    // SAFETY: a text of FFmpeg's own, which is never freed.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

fn admission(parameters: &ffmpeg::AVCodecParameters) -> Admission {
    use ffmpeg::AVCodecID as Id;
    let codec = match parameters.codec_id {
        Id::AV_CODEC_ID_H264 => memory::Codec::H264,
        Id::AV_CODEC_ID_HEVC => memory::Codec::Hevc,
        Id::AV_CODEC_ID_VP8 | Id::AV_CODEC_ID_VP9 => memory::Codec::Vp,
        Id::AV_CODEC_ID_AV1 => memory::Codec::Av1,
        _ => memory::Codec::Other,
    };
    let size = |value: i32| u64::try_from(value).unwrap_or(0);
    let said = told(parameters);
    Admission {
        codec,
        width: size(parameters.width),
        height: size(parameters.height),
        level: u32::try_from(parameters.level).ok().or(said.map(|[_, level]| level)),
        profile: u32::try_from(parameters.profile).ok().or(said.map(|[profile, _]| profile)),
    }
}

/// Profile and level as the container has them for the decoder, where no packet has been looked into yet: `avcC` (ISO/IEC
/// 14496-15, 5.3.3.1) and `hvcC` (8.3.3.1).
fn told(parameters: &ffmpeg::AVCodecParameters) -> Option<[u32; 2]> {
    use ffmpeg::AVCodecID as Id;
    let length =
        usize::try_from(parameters.extradata_size).ok().filter(|_| !parameters.extradata.is_null())?;
    // SAFETY: of so many bytes, alive as long as the parameters.
    let head = unsafe { std::slice::from_raw_parts(parameters.extradata, length) };
    let at = |index: usize| head.get(index).map(|byte| u32::from(*byte));
    match (parameters.codec_id, at(0)?) {
        (Id::AV_CODEC_ID_H264, 1) => Some([at(1)?, at(3)?]),
        (Id::AV_CODEC_ID_HEVC, 1) => Some([at(1)? & 31, at(12)?]),
        _ => None,
    }
}
