//! Files that were read: they are charged to the control group, whose figure then rises without a leak.

use caulk_core::{Recording, Remark};

/// Page cache gained that is worth a word, in bytes, and its part of what the group has gained.
const WORTH: u64 = 256 << 20;
const PART: f64 = 0.5;

/// What of the control group's rise is page cache, where that is most of it.
pub(crate) fn remark(recording: &Recording) -> Option<Remark> {
    recording.info.limits.cgroup_bytes?;
    // The statistics are not read at every look.
    let mut looks = recording.system.iter().filter_map(|look| look.cgroup_bytes.zip(look.cgroup_cache_bytes));
    let (all_before, cache_before) = looks.next()?;
    let (all, cache) = looks.next_back()?;
    let (all, cache) = (all.saturating_sub(all_before), cache.saturating_sub(cache_before));
    let is_most = cache >= WORTH && cache as f64 >= PART * all as f64;
    is_most.then_some(Remark::PageCache { bytes: all.max(cache), cache_bytes: cache })
}

#[cfg(test)]
mod tests {
    use caulk_core::SystemSample;

    use super::*;

    fn note_of(looks: [(u64, Option<u64>); 3]) -> Option<String> {
        let look = |(bytes, cache): (u64, Option<u64>)| SystemSample {
            cgroup_bytes: Some(bytes << 20),
            cgroup_cache_bytes: cache.map(|cache| cache << 20),
            ..SystemSample::default()
        };
        let mut recording = Recording { system: looks.map(look).into(), ..Recording::default() };
        recording.info.limits.cgroup_bytes = Some(8 << 30);
        remark(&recording).map(|remark| caulk_report::note(&remark).text)
    }

    #[test]
    fn page_cache_is_told_where_it_makes_the_group_rise() {
        let told = note_of([(1000, Some(100)), (2500, None), (3000, Some(1900))]).expect("it rose");
        assert!(
            told.starts_with("the control group's memory rose by 1.95 GB, of which 1.76 GB are"),
            "{told}"
        );
        assert_eq!(
            note_of([(1000, Some(100)), (2500, None), (3000, Some(600))]),
            None,
            "most is the program's"
        );
        assert_eq!(note_of([(1000, Some(100)), (1100, None), (1200, Some(300))]), None, "too little");
    }
}
