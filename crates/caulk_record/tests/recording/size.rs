//! How much a recording takes.

use camino::Utf8Path;
use caulk_core::ProcessRecord;
use caulk_record::{Writer, read};

use crate::story::{assert_is, folder, info, looks, process, record, seconds};

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

/// A program that starts ten thousand children, each of which is seen once.
#[test]
fn ten_thousand_short_lived_children_take_little() {
    let (_guard, folder) = folder();
    let mut writer = Writer::create(&folder, &info()).unwrap();
    for second in 0..100 {
        for pid in 0..100 {
            let pid = 10_000 + second as u32 * 100 + pid;
            writer.process(&ProcessRecord { last_ns: second, ..process(pid, second) });
            for item in looks(second, pid).take(1) {
                item.give(&mut writer);
            }
        }
        writer.flush().unwrap();
    }
    writer.finish(&info()).unwrap();
    let recording = read(&folder).unwrap();
    assert_eq!((recording.processes.len(), recording.samples.len()), (10_000, 10_000));
    assert!(size(&folder) < BUDGET, "{} bytes", size(&folder));
}
