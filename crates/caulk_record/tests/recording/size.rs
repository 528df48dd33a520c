//! How much a recording takes.

use camino::Utf8Path;
use caulk_record::read;

use crate::story::{assert_is, folder, info, record, seconds};

const BUDGET: u64 = 2 << 20;

fn size(folder: &Utf8Path) -> u64 {
    folder.read_dir_utf8().unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// One process for an hour at four looks a second, a boundary with a census of 50 rows every 18 seconds.
#[test]
fn an_hour_of_one_process_stays_below_2_mib() {
    let (_guard, folder) = folder();
    let story = seconds(3600, 18);
    let writer = record(&folder, &story).unwrap();
    let running = size(&folder);
    writer.finish(&info()).unwrap();
    let finished = size(&folder);
    assert!(running < BUDGET, "{running} bytes while it runs, {finished} after");
    assert!(finished < BUDGET / 2, "{finished} bytes");
    assert_is(&read(&folder).unwrap(), &story);
}
