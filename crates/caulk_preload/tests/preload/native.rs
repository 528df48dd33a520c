//! Programs in C and C++: what they do to an allocator, with threads, forks, signals, jumps and exceptions.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use caulk_wire::heap::{INTERVAL, INTERVAL_VARIABLE, header};

use crate::build::{C, CC, build, compiled, skipped};
use crate::program::{Profile, Run, run};

fn program(mode: &str) -> Run {
    run(Command::new(compiled()).arg(mode))
}

#[test]
fn every_function_of_the_allocator_gives_what_it_gives_without() {
    let run = program("family");
    let profile = run.first();
    profile.is_sound();
    assert!(profile.count(header::SAMPLES) > 100, "{}", profile.count(header::SAMPLES));
    // Everything was freed.
    assert!(profile.live() < 2 << 20, "{}", profile.live());
}

#[test]
fn what_is_kept_is_counted_without_bias() {
    let run = program("keep");
    let profile = run.first();
    profile.is_sound();
    let totals = profile.slot().totals();
    let deviation = totals.iter().map(|total| total.variance as f64).sum::<f64>().sqrt() * 1024.0;
    // 200 MB in blocks of 1 KB to 1 MB.
    let error = profile.live() as f64 - 200e6;
    assert!(deviation < 15e6 && error.abs() < 5.0 * deviation.max(1e6), "{error} of {deviation}");
}

#[test]
fn samples_are_as_frequent_as_asked() {
    let samples = |wanted: &str| {
        let mut command = Command::new(compiled());
        command.arg("keep").env(INTERVAL_VARIABLE, wanted);
        run(&mut command).first().count(header::SAMPLES)
    };
    let (usual, precise) = (samples(""), samples("131072"));
    // Most of the large blocks are sampled in any case.
    assert!(precise > usual + usual / 4, "{precise} and {usual}");
}

#[test]
fn programs_at_fixed_addresses_are_sampled() {
    let (_folder, path) = build("cc", "program.c", C, &["-no-pie"]).expect("it was built before");
    assert_eq!(run(Command::new(path).arg("keep")).first().live() >> 27, 1);
}

#[test]
fn mappings_of_the_programs_own_are_counted_and_given_back_in_parts() {
    let run = program("mappings");
    let profile = run.first();
    profile.is_sound();
    // 4 + 8 + 6 + 2 + 4 parts of 4 MiB each.
    let parts = profile.live() as f64 / f64::from(1 << 22);
    assert!((23.9..24.6).contains(&parts), "{parts}");
}

#[test]
fn threads_share_a_profile() {
    let run = program("threads");
    let profile = run.first();
    profile.is_sound();
    assert!(profile.live() < 4 << 20, "{}", profile.live());
}

/// Seconds that threads allocate; `cargo xtask test --full` asks for more.
fn stress_seconds() -> String {
    std::env::var("CAULK_STRESS_SECONDS").unwrap_or_else(|_| "3".into())
}

#[test]
fn threads_may_allocate_for_long() {
    let run = run(Command::new(compiled()).args(["stress", &stress_seconds()]));
    let profile = run.first();
    assert!(profile.count(header::SAMPLES) > 1000, "{}", profile.count(header::SAMPLES));
    assert_eq!(profile.count(header::STALE), 0);
    assert_eq!(profile.live(), 0, "everything was freed by another thread");
}

#[test]
fn forked_children_have_their_own() {
    let run = program("fork");
    run.first().is_sound();
    // The parent's 10 MB, and 30 MB in the child that it kept itself.
    let mut live: Vec<u64> = run.profiles.iter().map(|profile| profile.live() >> 20).collect();
    live.sort_unstable();
    assert_eq!(live, [9, 28], "{}", run.output);
}

#[test]
fn processes_beyond_the_last_slot_run_without_and_are_counted() {
    // The parent has one of the 64 slots.
    let run = program("manyforks");
    assert_eq!((run.first().count(header::DROPPED), run.turned_away), (0, 7), "{}", run.output);
}

#[test]
fn slots_of_processes_that_have_ended_are_taken_over_unless_they_are_still_to_be_read() {
    let run = program("forksinturn");
    assert_eq!(run.turned_away, 0, "{}", run.output);
    // The first process's slot, that of a child that lives to the end, and that of an agent's that was killed: 10 MB each.
    let live: Vec<u64> = run.profiles.iter().map(|profile| profile.live() >> 20).collect();
    assert_eq!(live[..3], [9, 9, 9], "{}", run.output);
    run.profiles[..3].iter().for_each(Profile::is_sound);
    // The fourth slot was the first to be taken over, and then again; nothing of its former owners is left in it.
    let last = &run.profiles[3];
    last.is_sound();
    assert!(live[3] == 9 && last.count(header::SAMPLES) < 40, "{live:?}");
    // But what they had counted: 100 of 160 have lost theirs, of 40 blocks of 1 MB each.
    assert!((3000..=4100).contains(&run.samples_taken_over), "{}", run.samples_taken_over);
}

#[test]
fn what_a_killed_program_held_can_be_read_after_its_end() {
    let run = run(Command::new(compiled()).arg("killed").env(INTERVAL_VARIABLE, "65536"));
    assert_eq!(run.status.signal(), Some(9), "{}", run.output);
    // 40 blocks of 1 MB, of which every fourth was freed.
    let live = run.profiles[0].live();
    assert!((30_000_000..31_000_000).contains(&live), "{live}");
}

#[test]
fn what_is_asked_for_in_vain_is_no_sample() {
    let run = run(Command::new(compiled()).arg("failing").env(INTERVAL_VARIABLE, "65536"));
    let profile = run.first();
    profile.is_sound();
    // 50 MB that could not grow, 200 MB in all sizes, and 16,000 bytes that were asked for between failures.
    let live = profile.live() as f64 / 1e6;
    assert!((235.0..265.0).contains(&live), "{live}");
}

#[test]
fn what_a_child_of_vfork_allocates_is_its_parents_and_what_it_executes_does_not_disturb() {
    let run = program("vfork");
    let profile = run.first();
    profile.is_sound();
    // 20 blocks of 300 kB, and those 10 of 10 MB that the parent did not give back.
    let live = profile.live() as f64 / 1e6;
    assert!((100.0..112.0).contains(&live), "{live}");
    assert_eq!(run.profiles.len(), 1, "a child of vfork has no profile of its own");
}

#[test]
fn programs_that_are_spawned_have_profiles_of_their_own() {
    let run = program("spawns");
    run.profiles.iter().for_each(Profile::is_sound);
    let mut live: Vec<u64> = run.profiles.iter().map(|profile| profile.live() >> 20).collect();
    live.sort_unstable();
    // Each keeps 200 MB in small blocks, which sampling knows to some 10 MB.
    assert!(live.len() == 4 && live[0] == 9, "{}", run.output);
    assert!(live[1..].iter().all(|kept| (140..240).contains(kept)), "{live:?}");
}

#[test]
fn forks_amid_threads_do_not_hang() {
    run(Command::new(compiled()).args(["forkloop", &stress_seconds()])).first();
}

#[test]
fn signal_handlers_may_allocate_in_the_middle_of_a_sample() {
    let run = program("signals");
    let profile = run.first();
    // What a handler asks for there is left out, and nothing else is.
    let (dropped, samples) = (profile.count(header::DROPPED), profile.count(header::SAMPLES));
    assert!((1..=3000).contains(&dropped) && samples > dropped, "{dropped} and {samples}");
    assert_eq!((profile.live(), profile.count(header::STALE)), (0, 0));
}

#[test]
fn signal_handlers_may_map_while_a_thread_is_made() {
    let run = program("threadsignals");
    let profile = run.first();
    assert!(profile.count(header::SAMPLES) > 100, "{}", profile.count(header::SAMPLES));
    assert_eq!(profile.count(header::STALE), 0);
}

#[test]
fn a_jump_out_of_the_middle_of_a_sample_does_not_end_sampling() {
    let run = run(Command::new(compiled()).arg("jumpout").env(INTERVAL_VARIABLE, "65536"));
    // 200 MB that were kept after 300 jumps; each of them may have left a mapping of 62 KB behind.
    let live = run.first().live() as f64 / 1e6;
    assert!((185.0..235.0).contains(&live), "{live}");
}

#[test]
fn samples_become_rarer_where_they_cost_too_much() {
    let interval = |mode: &str, wanted: &str| {
        let mut command = Command::new(compiled());
        command.args([mode, "1"]).env(INTERVAL_VARIABLE, wanted);
        run(&mut command).first().count(header::INTERVAL)
    };
    assert_eq!(interval("keep", ""), INTERVAL);
    let flooded = interval("stress", "1024");
    assert!(flooded >= 4096, "{flooded}");
    // Hardly a sample, but what is known is looked through whenever something goes.
    let searched = interval("unmaps", "");
    assert!(searched > INTERVAL, "{searched}");
}

#[test]
fn signal_handlers_may_fork() {
    assert!(program("handlerforks").first().count(header::SAMPLES) > 100);
}

#[test]
fn jumps_out_of_handlers_and_early_ends_of_threads_leave_it_at_work() {
    let run = program("jumps");
    let profile = run.first();
    assert!(profile.count(header::SAMPLES) > 10);
    // What a thread asks for and gives back when its own functions have returned is seen as well.
    assert!(profile.live() < 2 << 20, "{}", profile.live());
}

#[test]
fn libraries_come_and_go() {
    program("libraries").first().is_sound();
}

#[test]
fn blocks_from_before_the_allocator_was_known_are_kept_grown_and_freed() {
    program("early").first().is_sound();
}

#[test]
fn memory_is_trimmed_as_without() {
    program("trim").first().is_sound();
}

#[test]
fn exceptions_pass_through_threads() {
    match build("c++", "program.cc", CC, &["-std=c++17"]) {
        Ok((_folder, path)) => {
            let run = run(Command::new(path).args(["new", "vain"]));
            let profile = run.first();
            profile.is_sound();
            // C++'s library takes what `new` is asked for from malloc.
            assert_eq!(profile.live() / 1_000_000, 40);
        }
        Err(why) => skipped("C++", &why),
    }
}

#[test]
fn a_program_without_python_is_left_alone() {
    let run = run(Command::new("cat").arg("/dev/null"));
    assert!(run.status.success() && run.profiles.is_empty());
}
