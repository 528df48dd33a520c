//! MP4 and `QuickTime`: by how much each sample is shown later than it is decoded, from the `moov` box alone.
//!
//! Only what is plain is read: one stretch of the track, as it lies in the file. Everything else is for whoever reads all packets.

/// Offsets of the samples of a track, in units of the track and decoding order; `None` where the box is not plain.
pub fn composition_offsets(moov: &[u8], track: u32) -> Option<Vec<i32>> {
    let tracks = boxes(moov).filter(|(kind, _)| *kind == b"trak").map(|(_, body)| body);
    let track = tracks.filter(|body| id(body) == Some(track)).last()?;
    if boxes(moov).any(|(kind, _)| kind == b"mvex") || !is_one_stretch(track) {
        return None;
    }
    let table = inside(inside(inside(track, *b"mdia")?, *b"minf")?, *b"stbl")?;
    let samples = word(inside(table, *b"stsz")?, 8)? as usize;
    let Some(offsets) = inside(table, *b"ctts") else { return Some(vec![0; samples]) };
    let runs = offsets.get(8..)?.chunks_exact(8).take(word(offsets, 4)? as usize);
    let mut all = Vec::with_capacity(samples.min(1 << 20));
    for run in runs {
        let (count, offset) = (word(run, 0)? as usize, word(run, 4)? as i32);
        if count > samples - all.len() {
            return None;
        }
        all.extend(std::iter::repeat_n(offset, count));
    }
    (all.len() == samples).then_some(all)
}

/// The boxes in a body, each with its kind and its own body. Ends where something does not add up.
pub fn boxes(body: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let kind = rest.get(4..8)?.first_chunk()?;
        let (head, size) = match word(rest, 0)? {
            0 => (8, rest.len()),
            1 => (16, usize::try_from(u64::from_be_bytes(*rest.get(8..16)?.first_chunk()?)).ok()?),
            size => (8, size as usize),
        };
        let whole;
        (whole, rest) = rest.split_at_checked(size)?;
        Some((kind, whole.get(head..)?))
    })
}

fn inside(body: &[u8], kind: [u8; 4]) -> Option<&[u8]> {
    boxes(body).find(|(found, _)| **found == kind).map(|(_, body)| body)
}

fn word(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*body.get(at..)?.first_chunk()?))
}

/// A track's number, behind two dates whose width depends on the version.
fn id(track: &[u8]) -> Option<u32> {
    let head = inside(track, *b"tkhd")?;
    word(head, if *head.first()? == 1 { 20 } else { 12 })
}

/// Whether the edit list, if there is one, shows one stretch of the track, perhaps after a pause.
fn is_one_stretch(track: &[u8]) -> bool {
    let Some(list) = inside(track, *b"edts").and_then(|edits| inside(edits, *b"elst")) else { return true };
    let wide = list.first() == Some(&1);
    let (size, time) = if wide { (20, 8..16) } else { (12, 4..8) };
    let is_pause = |edit: &&[u8]| edit[time.clone()].iter().all(|byte| *byte == 0xFF);
    let edits = list.get(8..).unwrap_or_default().chunks_exact(size);
    edits.filter(|edit| !is_pause(edit)).count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
        [&(8 + body.len() as u32).to_be_bytes()[..], &kind, body].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn track(samples: u32, runs: &[u32], edits: &[u8]) -> Vec<u8> {
        let stsz = made(*b"stsz", &words(&[0, 0, samples]));
        let ctts = made(*b"ctts", &words(&[&[0, runs.len() as u32 / 2], runs].concat()));
        let table = made(*b"stbl", &[stsz, if runs.is_empty() { Vec::new() } else { ctts }].concat());
        let media = made(*b"mdia", &made(*b"minf", &table));
        let head = made(*b"tkhd", &words(&[0, 0, 0, 7, 0]));
        made(*b"trak", &[head, edits.to_vec(), media].concat())
    }

    fn check(moov: &[u8], expected: Option<&[i32]>) {
        assert_eq!(composition_offsets(moov, 7).as_deref(), expected);
    }

    #[test]
    fn runs_are_spread_over_samples() {
        check(&track(4, &[1, 2, 3, u32::MAX], &[]), Some(&[2, -1, -1, -1]));
        check(&track(3, &[], &[]), Some(&[0, 0, 0]));
    }

    #[test]
    fn what_does_not_add_up_is_left_to_others() {
        check(&track(4, &[1, 2], &[]), None);
        check(&track(4, &[9, 2], &[]), None);
        check(&[track(1, &[], &[]), made(*b"mvex", &[])].concat(), None);
        check(&track(3, &[3, 0], &[])[..60], None);
        check(b"", None);
    }

    #[test]
    fn one_stretch_may_be_shown_and_may_begin_late() {
        let edits = |edits: &[u32]| {
            made(*b"edts", &made(*b"elst", &words(&[&[0, edits.len() as u32 / 3], edits].concat())))
        };
        check(&track(1, &[], &edits(&[9, u32::MAX, 1, 5, 1024, 1])), Some(&[0]));
        check(&track(1, &[], &edits(&[5, 0, 1, 5, 1024, 1])), None);
    }
}
