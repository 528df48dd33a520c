//! One video: which frames it has, and those that are wanted.
//!
//! Packets tell the frames without decoding ([`Index`]), and only what the wanted ones need is decoded. Where packets do not
//! tell, or decoding from the middle shows a doubt, everything is decoded in order, a frame at a time: the result is the
//! same, and says why it took longer.

use std::collections::{BTreeMap, HashSet};
use std::iter::Peekable;

use caulk_clip::h264::{self, Framing};
use caulk_clip::index::Index;
use caulk_clip::picture::Picture;
use caulk_clip::plan::{self, Leaves, Segment};
use caulk_clip::told::{Packets, Told};
use caulk_clip::{SelectionError, memory};
use ffmpeg_sys_next as ffmpeg;

use crate::cache;
use crate::decoder::{Decoder, Frame};
use crate::error::DecodeError;
use crate::input::{Input, Packet, Read};
use crate::log;
use crate::scale::{Scaler, Target};
use crate::table::{self, Entry};

/// How to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a> {
    /// What pictures are to look like.
    pub target: Target,
    /// Bytes that decoding may take.
    pub memory: u64,
    /// Decode everything in order, whatever the packets tell.
    pub sequential: bool,
    /// How far a frame may be from the one that is wanted, where packets tell that it is cheaper.
    pub snap: u32,
    /// Folder for what packets have told, so that they need not be read again.
    pub cache: Option<&'a str>,
}

/// Frames of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Frames that a full decode puts out.
    pub total: u32,
    /// The pictures that were wanted, by the frames that were.
    pub pictures: BTreeMap<u32, Picture>,
    /// Which frame was taken for each.
    pub taken: BTreeMap<u32, u32>,
    /// Why everything was decoded, if it was.
    pub sequential: Option<String>,
}

/// Which frames are wanted of how many there are.
pub type Wanted<'a> = dyn Fn(u32) -> Result<Vec<u32>, SelectionError> + 'a;

/// Decodes the frames of a file that are wanted.
///
/// # Errors
/// If it holds no video that can be decoded, frames are wanted that it does not have, or it would take too much memory.
pub fn decode(path: &str, options: &Options, wanted: &Wanted) -> Result<Decoded, DecodeError> {
    let planned = if options.sequential { Err(Whole::new("asked for")) } else { Planned::of(path, options)? };
    let (index, whole) = match planned {
        Err(whole) => (None, whole),
        Ok(planned) => match planned.decode(path, options, wanted) {
            Ok(decoded) => return Ok(decoded),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Doubt(why)) => (Some(planned.index), Whole::new(why)),
        },
    };
    let total = match whole.total {
        Some(total) => total,
        None => whole.count(path, options)?,
    };
    let frames = options.frames(wanted, total)?;
    // The same frames as if there had been no doubt, which may have come of what else was wanted.
    let taken = match index.filter(|index| index.len() == total) {
        Some(index) => plan::snap(&index, &frames, options.snap),
        None => frames.clone(),
    };
    let found = in_order(path, options, &taken)?;
    let pictures =
        frames.iter().zip(&taken).filter_map(|(frame, taken)| Some((*frame, found.get(taken)?.clone())));
    Ok(Decoded {
        total,
        pictures: pictures.collect(),
        taken: frames.iter().copied().zip(taken.iter().copied()).collect(),
        sequential: Some(whole.why),
    })
}

impl Options<'_> {
    /// Numbers of the frames that are wanted, if their pictures do not take too much.
    fn frames(&self, wanted: &Wanted, total: u32) -> Result<Vec<u32>, DecodeError> {
        let frames = wanted(total)?;
        if let Some(size) = self.target.size {
            memory::admit_pictures(frames.len() as u64, size.bytes() as u64, self.memory)?;
        }
        Ok(frames)
    }
}

/// A video whose packets do not tell its frames.
struct Whole {
    why: String,
    /// Frames, if they have been counted before.
    total: Option<u32>,
    /// Where to keep their number.
    entry: Option<cache::Entry>,
}

impl Whole {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), total: None, entry: None }
    }

    fn count(&self, path: &str, options: &Options) -> Result<u32, DecodeError> {
        let total = count(path, options)?;
        if let Some(entry) = &self.entry {
            entry.write(&Told::Whole { why: self.why.clone(), total });
        }
        Ok(total)
    }
}

/// Why a plan was not carried through.
enum Stop {
    Error(DecodeError),
    Doubt(String),
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Self::Error(error)
    }
}

impl From<SelectionError> for Stop {
    fn from(error: SelectionError) -> Self {
        Self::Error(error.into())
    }
}

/// How the stream is coded.
#[derive(Clone, Copy)]
struct Codec {
    id: ffmpeg::AVCodecID,
    framing: Framing,
}

impl Codec {
    fn of(input: &Input) -> Self {
        Self { id: input.parameters().codec_id, framing: Framing::of(input.configuration()) }
    }

    fn is_h264(self) -> bool {
        self.id == ffmpeg::AVCodecID::AV_CODEC_ID_H264
    }

    /// Whether the first key frame was not made to begin with.
    fn is_cut(self, first: &Packet) -> bool {
        self.is_h264() && !h264::is_instantaneous(first.data(), self.framing)
    }
}

/// A video whose packets tell its frames.
struct Planned {
    index: Index,
    leaves: Leaves,
    framing: Framing,
    /// Where packets lie, if tables have told them.
    entries: Vec<Entry>,
}

impl Planned {
    /// Reads tables, else what is known of all packets, else these; the inner error says why they do not tell.
    fn of(path: &str, options: &Options) -> Result<Result<Self, Whole>, DecodeError> {
        let mut input = Input::open(path)?;
        let codec = Codec::of(&input);
        let entries = input.entries();
        let tables = table::packets(path, input.track(), &entries)
            .filter(|packets| packets[0].key && codec.id != ffmpeg::AVCodecID::AV_CODEC_ID_VP8);
        if let Some(packets) = tables {
            let mut packet = Packet::new()?;
            input.read(&mut packet);
            let cut = codec.is_cut(&packet);
            return match Index::of(&packets, cut, input.is_damaged()) {
                Ok(index) => Self::new(path, options, codec, index, entries).map(|(planned, _)| Ok(planned)),
                Err(why) => Ok(Err(Whole::new(why.to_string()))),
            };
        }
        let entry = cache::Entry::of(options.cache, path);
        match entry.read() {
            Some(Told::Packets(packets)) if let Ok(index) = packets.index() => {
                let entries = if input.finds_times() { Entry::all(&packets) } else { Vec::new() };
                Self::new(path, options, codec, index, entries).map(|(planned, _)| Ok(planned))
            }
            Some(Told::Whole { why, total }) => Ok(Err(Whole { why, total: Some(total), entry: None })),
            _ => Self::by_packets(path, options, input, codec, entry),
        }
    }

    /// Reads all packets, and keeps what they tell.
    fn by_packets(
        path: &str,
        options: &Options,
        mut input: Input,
        codec: Codec,
        entry: cache::Entry,
    ) -> Result<Result<Self, Whole>, DecodeError> {
        let (mut packet, mut packets, mut places) = (Packet::new()?, Vec::new(), Vec::new());
        let mut cut = None;
        while let Read::Packet = input.read(&mut packet) {
            let described = packet.described(codec.id);
            if described.key && cut.is_none() {
                cut = Some(codec.is_cut(&packet));
            }
            packets.push(described);
            places.push(packet.get().pos);
        }
        let state = [cut.unwrap_or(false), input.is_damaged()];
        let index = match Index::of(&packets, state[0], state[1]) {
            Ok(index) => index,
            Err(why) => return Ok(Err(Whole { why: why.to_string(), total: None, entry: Some(entry) })),
        };
        let (mut planned, gave) = Self::new(path, options, codec, index, Vec::new())?;
        if let Some(told) = Packets::of(&packets, &places, state, gave) {
            if input.finds_times() {
                planned.entries = Entry::all(&told);
            }
            entry.write(&Told::Packets(told));
        }
        Ok(Ok(planned))
    }

    /// Settles what is in doubt, and says which packets gave frames.
    fn new(
        path: &str,
        options: &Options,
        codec: Codec,
        index: Index,
        entries: Vec<Entry>,
    ) -> Result<(Self, HashSet<u32>), DecodeError> {
        let leaves = if codec.is_h264() { Leaves::Unreferenced } else { Leaves::Leading };
        let mut planned = Self { index, leaves, framing: codec.framing, entries };
        let gave = planned.settle(path, options)?;
        Ok((planned, gave))
    }

    /// Decodes what is in doubt, to know which packets give frames.
    fn settle(&mut self, path: &str, options: &Options) -> Result<HashSet<u32>, DecodeError> {
        let mut gave = HashSet::new();
        if !self.index.doubts().is_empty() {
            let mut walk = Walk::open(path, options, self.index.reordered())?;
            for range in self.index.doubts() {
                walk.skip_to(range.start);
                while walk.at() < range.end && walk.next() {
                    walk.decoder.send(&walk.packet);
                    walk.frames(|frame| gave.extend(frame.number()));
                }
                walk.decoder.drain();
                walk.frames(|frame| gave.extend(frame.number()));
                walk.decoder.flush();
            }
        }
        self.index.settle(|packet| gave.contains(&packet));
        Ok(gave)
    }

    fn decode(&self, path: &str, options: &Options, wanted: &Wanted) -> Result<Decoded, Stop> {
        let total = self.index.len();
        let frames = options.frames(wanted, total)?;
        let mut walk = Walk::open(path, options, self.index.reordered())?;
        let mut scaler = Scaler::new(options.target, &walk.input);
        let mut found = BTreeMap::new();
        let taken = plan::snap(&self.index, &frames, options.snap);
        let mut segments = plan::plan(&self.index, &taken).into_iter().peekable();
        while let Some(segment) = segments.next() {
            self.segment(segment, &mut segments, &mut walk, &mut scaler, &mut found)?;
        }
        let picture = |(frame, taken): (&u32, &u32)| {
            let picture = found.get(&self.index.packet(*taken)).cloned();
            picture
                .map(|picture| (*frame, picture))
                .ok_or_else(|| Stop::Doubt(format!("frame {taken} did not come")))
        };
        let pictures = frames.iter().zip(&taken).map(picture).collect::<Result<_, _>>()?;
        Ok(Decoded { total, pictures, taken: frames.into_iter().zip(taken).collect(), sequential: None })
    }

    fn segment(
        &self,
        mut segment: Segment,
        following: &mut Peekable<impl Iterator<Item = Segment>>,
        walk: &mut Walk,
        scaler: &mut Scaler,
        found: &mut BTreeMap<u32, Picture>,
    ) -> Result<(), Stop> {
        walk.seek(segment.start, &self.entries);
        // H.264: what comes after a key frame that is not instantaneous counts as recovered only when the decoder has put
        // the key frame out in its own time, so draining would lose it.
        let mut patient = false;
        let mut missing = segment.targets.len();
        while walk.at() <= segment.end() || patient && missing > 0 {
            if let Some(next) = following.next_if(|next| next.start == walk.at()) {
                missing += next.targets.len();
                segment.absorb(next);
            }
            if !walk.next() {
                break;
            }
            let (number, data) = (walk.at() - 1, walk.packet.data());
            if number == segment.start && self.leaves == Leaves::Unreferenced {
                patient = !h264::is_instantaneous(data, self.framing);
            }
            let referenced = || h264::is_referenced(data, self.framing);
            if !segment.needs(&self.index, number, self.leaves, referenced) {
                continue;
            }
            let before = log::errors();
            walk.decoder.send(&walk.packet);
            // What is shown before the key frame may miss what it refers to, and is not wanted.
            if log::errors() > before && !segment.is_leading(&self.index, number) {
                return Err(Stop::Doubt(format!("packet {number} was decoded with errors")));
            }
            missing -= take(walk, &segment, scaler, found)?;
        }
        walk.decoder.drain();
        take(walk, &segment, scaler, found)?;
        walk.decoder.flush();
        Ok(())
    }
}

/// Takes the pictures that are wanted out of the frames that are ready, and counts them.
fn take(
    walk: &mut Walk,
    segment: &Segment,
    scaler: &mut Scaler,
    found: &mut BTreeMap<u32, Picture>,
) -> Result<usize, Stop> {
    let before = found.len();
    while let Some(frame) = walk.decoder.receive() {
        let Some(number) = frame.number().filter(|number| segment.targets.binary_search(number).is_ok())
        else {
            continue;
        };
        if frame.is_doubtful() {
            return Err(Stop::Doubt(format!("the frame of packet {number} was decoded with errors")));
        }
        if frame.is_interlaced() {
            return Err(Stop::Doubt("interlaced: two packets may make one frame".into()));
        }
        found.insert(number, scaler.picture(frame)?);
    }
    Ok(found.len() - before)
}

/// Counts the frames that a full decode puts out.
fn count(path: &str, options: &Options) -> Result<u32, DecodeError> {
    let mut total = 0;
    everything(path, options, |_, _| {
        total += 1;
        Ok(true)
    })?;
    Ok(total)
}

/// Decodes everything up to the last frame that is wanted.
fn in_order(path: &str, options: &Options, frames: &[u32]) -> Result<BTreeMap<u32, Picture>, DecodeError> {
    let wanted: HashSet<u32> = frames.iter().copied().collect();
    let (mut at, mut found, mut scaler) = (0, BTreeMap::new(), None);
    everything(path, options, |input, frame| {
        if wanted.contains(&at) {
            let scaler = scaler.get_or_insert_with(|| Scaler::new(options.target, input));
            found.insert(at, scaler.picture(frame)?);
        }
        at += 1;
        Ok(found.len() < wanted.len())
    })?;
    Ok(found)
}

/// Shows all frames in order to a function, for as long as it wants more.
fn everything(
    path: &str,
    options: &Options,
    mut show: impl FnMut(&Input, &mut Frame) -> Result<bool, DecodeError>,
) -> Result<(), DecodeError> {
    let mut walk = Walk::open(path, options, 0)?;
    let mut more = true;
    while more {
        more = walk.next();
        if more {
            walk.decoder.send(&walk.packet);
        } else {
            walk.decoder.drain();
        }
        while let Some(frame) = walk.decoder.receive() {
            if !show(&walk.input, frame)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A way through a file, forward, with a decoder beside it.
struct Walk {
    input: Input,
    decoder: Decoder,
    packet: Packet,
    at: u32,
    /// The next packet has been read already, to know where a leap has led.
    read: bool,
}

impl Walk {
    fn open(path: &str, options: &Options, reordered: u32) -> Result<Self, DecodeError> {
        let input = Input::open(path)?;
        let decoder = Decoder::open(&input, options.memory, reordered)?;
        Ok(Self { input, decoder, packet: Packet::new()?, at: 0, read: false })
    }

    /// Number of the next packet.
    fn at(&self) -> u32 {
        self.at
    }

    /// Reads the next packet and numbers it.
    fn next(&mut self) -> bool {
        let read = std::mem::take(&mut self.read);
        if !read && matches!(self.input.read(&mut self.packet), Read::End) {
            return false;
        }
        self.packet.number(self.at);
        self.at += 1;
        true
    }

    /// Leaps to a packet where the file's tables tell where it lies, else reads on to it.
    fn seek(&mut self, number: u32, entries: &[Entry]) {
        let (Some(entry), true) = (entries.get(number as usize), number > self.at) else {
            return self.skip_to(number);
        };
        self.input.seek(entry);
        // The demuxer may choose to lead to an earlier one.
        while let Read::Packet = self.input.read(&mut self.packet) {
            if self.packet.get().pos == entry.bytes.0 {
                (self.at, self.read) = (number, true);
                return;
            }
        }
        // Nothing is read any more, so what is wanted does not come, and everything is decoded.
        self.at = number;
    }

    fn skip_to(&mut self, number: u32) {
        while self.at < number && self.next() {}
    }

    fn frames(&mut self, mut show: impl FnMut(&Frame)) {
        while let Some(frame) = self.decoder.receive() {
            show(frame);
        }
    }
}
