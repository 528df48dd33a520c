//! What is given comes back: after the end, while it runs, and from the raw files alone.

use caulk_core::{Death, GpuSample, RunInfo, Slowed};
use caulk_record::{Writer, read};

use crate::story::{Item, MAIN, assert_is, folder, info, looks, one_of_each, process, record, seconds};

fn check(story: &[Vec<Item>]) {
    let (_guard, folder) = folder();
    let writer = record(&folder, story).unwrap();
    let running = read(&folder).unwrap();
    assert_eq!(running.problems, Vec::<String>::new());
    assert!(!running.info.complete);
    assert_is(&running, story);
    let death =
        Some(Death { code: Some(1), signal: None, kill: None, text: "exited".into(), stopped: false });
    let end = RunInfo { death, end_ns: Some(5), ..info() };
    writer.finish(&end).unwrap();
    let finished = read(&folder).unwrap();
    assert_eq!(finished.problems, Vec::<String>::new());
    assert_eq!(finished.info, RunInfo { complete: true, ..end });
    assert_is(&finished, story);
    assert_eq!(finished.processes, running.processes);
    let mut names: Vec<String> =
        folder.read_dir_utf8().unwrap().map(|file| file.unwrap().file_name().into()).collect();
    names.sort();
    assert_eq!(names.iter().filter(|name| name.ends_with(".parquet")).count(), 9, "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| name.ends_with(".parquet") || ["run.json", "index.log"].contains(&name.as_str())),
        "{names:?}"
    );
}

#[test]
fn one_message_of_each_kind() {
    check(&[one_of_each()]);
}

#[test]
fn a_table_that_older_versions_did_not_know_is_not_missed() {
    let (_guard, folder) = folder();
    record(&folder, &seconds(5, 1)).unwrap().finish(&info()).unwrap();
    std::fs::remove_file(folder.join("gpus.parquet")).unwrap();
    assert_eq!(read(&folder).unwrap().problems, Vec::<String>::new());
    std::fs::remove_file(folder.join("events.parquet")).unwrap();
    assert_eq!(read(&folder).unwrap().problems.len(), 1);
}

#[test]
fn looks_at_gpus_come_back() {
    let device = GpuSample {
        time_ns: 5,
        device: 1,
        used_bytes: 1 << 34,
        total_bytes: Some(1 << 35),
        celsius: Some(70),
        slowed: Some(Slowed::Hardware),
        name: "NVIDIA H200".into(),
        uuid: "GPU-0f0f-77".into(),
        ..GpuSample::default()
    };
    let part = GpuSample { time_ns: 5, device: 1, pid: Some(7), used_bytes: 9, ..GpuSample::default() };
    let (_guard, folder) = folder();
    let mut writer = record(&folder, &[]).unwrap();
    writer.gpu(&device);
    writer.gpu(&part);
    assert_eq!(read(&folder).unwrap().gpus, [device.clone(), part.clone()]);
    writer.finish(&info()).unwrap();
    assert_eq!(read(&folder).unwrap().gpus, [device, part]);
}

#[test]
fn an_empty_run() {
    check(&[]);
    check(&[Vec::new()]);
}

#[test]
fn a_short_run_with_a_census_in_every_second() {
    check(&seconds(70, 1));
}

#[test]
fn samples_of_a_long_run_are_thinned_but_for_the_last_ten_minutes() {
    let story = seconds(2000, 100);
    check(&story);
    let (_guard, folder) = folder();
    record(&folder, &story).unwrap().finish(&info()).unwrap();
    let kept = read(&folder).unwrap().samples.len();
    assert!((600 * 4 + 700..600 * 4 + 2 * 700 + 600).contains(&kept), "{kept} of {}", 2000 * 4);
}

#[test]
fn the_last_record_of_a_process_counts() {
    let (_guard, folder) = folder();
    let mut writer = Writer::create(&folder, &info()).unwrap();
    for second in 0..100 {
        writer.process(&process(MAIN, second));
        if second == 50 {
            writer.process(&process(MAIN + 1, second));
        }
        for item in looks(second, MAIN) {
            item.give(&mut writer);
        }
        writer.flush().unwrap();
    }
    let mut renamed = process(MAIN, 100);
    renamed.name = "trainer".into();
    writer.process(&renamed);
    let expected = [renamed, process(MAIN + 1, 50)];
    assert_eq!(read(&folder).unwrap().processes, expected);
    writer.finish(&info()).unwrap();
    assert_eq!(read(&folder).unwrap().processes, expected);
}

#[test]
fn secrets_of_the_command_line_do_not_reach_the_disk() {
    let (_guard, folder) = folder();
    let mut head = info();
    head.target.command = vec!["python".into(), "--token".into(), "hunter2".into()];
    head.target.environment = vec![("WANDB_API_KEY".into(), "hunter2".into())];
    let mut writer = Writer::create(&folder, &head).unwrap();
    let argv = vec!["train.py".into(), "--password=hunter2".into()];
    crate::story::event(1, caulk_core::wire::Hello { argv, ..Default::default() }).give(&mut writer);
    writer.update_info(&head).unwrap();
    let check = || {
        for file in folder.read_dir_utf8().unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(7).any(|seven| seven == b"hunter2"));
        }
    };
    check();
    writer.finish(&head).unwrap();
    check();
}
