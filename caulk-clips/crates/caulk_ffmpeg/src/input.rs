//! A file and the packets of its video stream, read forward.

use std::ffi::{CStr, CString, c_int};
use std::ptr::{self, NonNull};

use caulk_clip::index;
use caulk_clip::picture::{Aspect, Orientation};
use ffmpeg_sys_next as ffmpeg;

use crate::error::{Code, DecodeError};
use crate::table::Entry;

/// An open file.
#[derive(Debug)]
pub(crate) struct Input {
    context: NonNull<ffmpeg::AVFormatContext>,
    stream: c_int,
    /// The file ended before it should.
    damaged: bool,
}

/// How reading went on.
pub(crate) enum Read {
    /// The next packet of the video is in the caller's hands.
    Packet,
    /// There are no more.
    End,
}

impl Input {
    /// Opens a file and chooses its first video stream that is no cover.
    pub(crate) fn open(path: &str) -> Result<Self, DecodeError> {
        // The protocol is said: a name such as `http:x` is a file's.
        let url = CString::new(format!("file:{path}")).map_err(|_| DecodeError::Path)?;
        let mut context = ptr::null_mut();
        // SAFETY: the pointers live across the call; on failure FFmpeg has freed what it made.
        let code = unsafe {
            ffmpeg::avformat_open_input(&raw mut context, url.as_ptr(), ptr::null(), ptr::null_mut())
        };
        let context = NonNull::new(context).filter(|_| code >= 0).ok_or(DecodeError::Open(Code(code)))?;
        let mut input = Self { context, stream: -1, damaged: false };
        if !input.choose() || !input.is_described() {
            // Some containers tell their streams only by packets. It reads a few megabytes at most.
            // SAFETY: the context is open.
            unsafe { ffmpeg::avformat_find_stream_info(context.as_ptr(), ptr::null_mut()) };
        }
        if input.choose() { Ok(input) } else { Err(DecodeError::NoVideo) }
    }

    /// Finds the video stream and has everything else skipped.
    fn choose(&mut self) -> bool {
        self.stream = -1;
        for (at, stream) in self.streams().into_iter().enumerate() {
            let mine = self.stream < 0 && is_video(stream);
            if mine {
                self.stream = at as c_int;
            }
            let discard =
                if mine { ffmpeg::AVDiscard::AVDISCARD_DEFAULT } else { ffmpeg::AVDiscard::AVDISCARD_ALL };
            // SAFETY: the stream belongs to the open context.
            unsafe { (*stream.as_ptr()).discard = discard };
        }
        self.stream >= 0
    }

    /// Whether a decoder can be opened without having seen packets.
    fn is_described(&self) -> bool {
        let parameters = self.parameters();
        let bare = matches!(
            parameters.codec_id,
            ffmpeg::AVCodecID::AV_CODEC_ID_H264 | ffmpeg::AVCodecID::AV_CODEC_ID_HEVC
        );
        parameters.width > 0 && parameters.height > 0 && !(bare && parameters.extradata_size == 0)
    }

    fn streams(&self) -> Vec<NonNull<ffmpeg::AVStream>> {
        // SAFETY: the context is open.
        let context = unsafe { self.context.as_ref() };
        let stream = |at| {
            // SAFETY: `at` is below the number of streams.
            let stream = unsafe { *context.streams.add(at) };
            NonNull::new(stream)
        };
        (0..context.nb_streams as usize).filter_map(stream).collect()
    }

    fn stream(&self) -> &ffmpeg::AVStream {
        let stream = self.streams()[self.stream as usize];
        // SAFETY: streams live as long as the context, which `self` owns.
        unsafe { &*stream.as_ptr() }
    }

    /// What the container says of the codec.
    pub(crate) fn parameters(&self) -> &ffmpeg::AVCodecParameters {
        // SAFETY: every stream has parameters, for as long as it lives.
        unsafe { &*self.stream().codecpar }
    }

    /// The decoder's configuration.
    pub(crate) fn configuration(&self) -> &[u8] {
        let parameters = self.parameters();
        let size = usize::try_from(parameters.extradata_size).unwrap_or(0);
        if parameters.extradata.is_null() || size == 0 {
            return &[];
        }
        // SAFETY: FFmpeg keeps so many bytes there, for as long as the stream lives.
        unsafe { std::slice::from_raw_parts(parameters.extradata, size) }
    }

    /// How the picture is to be turned for display.
    pub(crate) fn orientation(&self) -> Orientation {
        let mut size = 0;
        let kind = ffmpeg::AVPacketSideDataType::AV_PKT_DATA_DISPLAYMATRIX;
        // SAFETY: the stream is alive, and `size` across the call.
        let data = unsafe { ffmpeg::av_stream_get_side_data(self.stream(), kind, &raw mut size) };
        if data.is_null() || size < 36 {
            return Orientation::default();
        }
        // SAFETY: a display matrix is nine 32-bit integers, wherever they lie.
        let matrix = unsafe { ptr::read_unaligned(data.cast::<[i32; 9]>()) };
        Orientation::of_matrix(&matrix)
    }

    /// The shape of a pixel, if the container says it.
    pub(crate) fn pixel(&self) -> Option<Aspect> {
        let said = self.stream().sample_aspect_ratio;
        Aspect::new(said.num, said.den)
    }

    /// Reads on to the next packet of the video.
    pub(crate) fn read(&mut self, packet: &mut Packet) -> Read {
        loop {
            packet.clear();
            // SAFETY: the context is open and the packet is empty.
            let code = unsafe { ffmpeg::av_read_frame(self.context.as_ptr(), packet.0.as_ptr()) };
            if code < 0 {
                self.damaged |= code != ffmpeg::AVERROR_EOF;
                return Read::End;
            }
            if packet.get().stream_index == self.stream {
                self.damaged |= packet.get().flags & ffmpeg::AV_PKT_FLAG_CORRUPT != 0;
                return Read::Packet;
            }
        }
    }

    /// Names of the container.
    fn format(&self) -> &'static [u8] {
        // SAFETY: every open context has its format.
        let format = unsafe { (*self.context.as_ref().iformat).name };
        // SAFETY: a format's name is a text that is never freed.
        unsafe { CStr::from_ptr(format) }.to_bytes()
    }

    /// Whether the container leads to a packet by the time at which it is shown, and says of every packet where it lies.
    pub(crate) fn finds_times(&self) -> bool {
        self.format().starts_with(b"matroska,")
    }

    /// The demuxer's index of an MP4 file, if it has read one.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        if !self.format().starts_with(b"mov,") {
            return Vec::new();
        }
        let stream = self.streams()[self.stream as usize].as_ptr();
        // SAFETY: a stream of the open context.
        let count = unsafe { ffmpeg::avformat_index_get_entries_count(stream) };
        let entry = |at| {
            // SAFETY: as above; a number beyond the end gives nothing.
            let entry = unsafe { ffmpeg::avformat_index_get_entry(stream, at) };
            // SAFETY: an entry lives until the context is used again.
            let entry = unsafe { entry.as_ref() }?;
            Some(Entry {
                bytes: (entry.pos, entry.size()),
                time: entry.timestamp,
                key: entry.flags() & ffmpeg::AVINDEX_KEYFRAME != 0,
                discarded: entry.flags() & ffmpeg::AVINDEX_DISCARD_FRAME != 0,
            })
        };
        (0..count).filter_map(entry).collect()
    }

    /// The container's number of the video stream.
    pub(crate) fn track(&self) -> u32 {
        self.stream().id as u32
    }

    /// Goes to a packet of the index; whether that is where the next one will be read is for the caller to check.
    pub(crate) fn seek(&mut self, entry: &Entry) {
        let flags = ffmpeg::AVSEEK_FLAG_BACKWARD | ffmpeg::AVSEEK_FLAG_ANY;
        // SAFETY: the context is open.
        unsafe { ffmpeg::av_seek_frame(self.context.as_ptr(), self.stream, entry.time, flags) };
    }

    /// Whether what has been read ends in damage.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let mut context = self.context.as_ptr();
        // SAFETY: opened by `open`, closed here alone.
        unsafe { ffmpeg::avformat_close_input(&raw mut context) };
    }
}

fn is_video(stream: NonNull<ffmpeg::AVStream>) -> bool {
    // SAFETY: a stream of an open context.
    let stream = unsafe { stream.as_ref() };
    // SAFETY: every stream has parameters.
    let parameters = unsafe { &*stream.codecpar };
    parameters.codec_type == ffmpeg::AVMediaType::AVMEDIA_TYPE_VIDEO
        && stream.disposition & ffmpeg::AV_DISPOSITION_ATTACHED_PIC == 0
}

/// One packet.
#[derive(Debug)]
pub(crate) struct Packet(NonNull<ffmpeg::AVPacket>);

impl Packet {
    pub(crate) fn new() -> Result<Self, DecodeError> {
        // SAFETY: no preconditions.
        let packet = unsafe { ffmpeg::av_packet_alloc() };
        NonNull::new(packet).map(Self).ok_or(DecodeError::NoMemory)
    }

    fn clear(&mut self) {
        // SAFETY: a packet that is ours.
        unsafe { ffmpeg::av_packet_unref(self.0.as_ptr()) };
    }

    pub(crate) fn get(&self) -> &ffmpeg::AVPacket {
        // SAFETY: allocated by `new`.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn data(&self) -> &[u8] {
        let packet = self.get();
        let size = usize::try_from(packet.size).unwrap_or(0);
        if packet.data.is_null() || size == 0 {
            return &[];
        }
        // SAFETY: so many bytes are in the packet until it is cleared, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(packet.data, size) }
    }

    /// What the index wants to know of it. VP8 alone has packets that show nothing.
    pub(crate) fn described(&self, codec: ffmpeg::AVCodecID) -> index::Packet {
        let packet = self.get();
        let hidden = codec == ffmpeg::AVCodecID::AV_CODEC_ID_VP8
            && self.data().first().is_some_and(|tag| tag & 0x10 == 0);
        let discarded = packet.flags & ffmpeg::AV_PKT_FLAG_DISCARD != 0;
        index::Packet {
            time: (packet.pts != ffmpeg::AV_NOPTS_VALUE).then_some(packet.pts),
            key: packet.flags & ffmpeg::AV_PKT_FLAG_KEY != 0,
            shown: !hidden && !discarded,
        }
    }

    /// Puts a number where decoders expect a time. The frame that comes of the packet carries it.
    pub(crate) fn number(&mut self, number: u32) {
        // SAFETY: allocated by `new`, and borrowed mutably.
        let packet = unsafe { self.0.as_mut() };
        packet.pts = i64::from(number);
        packet.dts = ffmpeg::AV_NOPTS_VALUE;
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        let mut packet = self.0.as_ptr();
        // SAFETY: allocated by `new`, freed here alone.
        unsafe { ffmpeg::av_packet_free(&raw mut packet) };
    }
}
