//! A program under the guard, played: how it grows and answers, and what the guard does.

use std::time::Duration;

use caulk_guard::{Action, Answer, Guard, GuardLimit, Ladder, Room, Wish};

const MB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// What the program is like.
#[derive(Clone, Copy)]
struct Program {
    base: u64,
    /// Bytes per second.
    leak: u64,
    /// Leaked bytes that a cleanup frees.
    frees: u64,
    /// Answers to cleanups and checkpoints after so many seconds.
    answers_after: Option<u64>,
    /// Makes steps.
    steps: bool,
    can_save: bool,
    can_restart: bool,
}

const LEAKY: Program = Program {
    base: 500 * MB,
    leak: 5 * MB,
    frees: 0,
    answers_after: Some(1),
    steps: true,
    can_save: true,
    can_restart: true,
};

/// Plays for so many seconds below a budget of 1000 MB, ten readings a second; what was done, each in one word, with
/// the megabytes that were in use.
fn play(program: Program, seconds: u64) -> Vec<(&'static str, u64)> {
    let mut guard = Guard::new(Ladder::USUAL, Duration::from_secs(10), 0);
    guard.can(program.can_save, program.can_restart);
    let (mut done, mut asked, mut freed) = (Vec::new(), None, 0);
    for now in (0..seconds * 10).map(|tenth| tenth * SECOND / 10) {
        if program.steps {
            guard.stepped(now, now / (SECOND / 20));
        }
        let used = program.base + (program.leak * now / SECOND).saturating_sub(freed);
        if let Some((since, wish)) = asked
            && program.answers_after.is_some_and(|after| now >= since + after * SECOND)
        {
            asked = None;
            freed += if wish == Wish::Cleanup { program.frees } else { 0 };
            let answer = if wish == Wish::Cleanup { Answer::Freed(program.frees) } else { Answer::Saved };
            guard.answered(now, wish, answer);
        }
        let room = Room { limit: GuardLimit::Budget, used, most: 1000 * MB };
        for action in guard.read(now, &[room], None) {
            if let Action::Ask(wish, _) = action {
                asked = Some((now, wish));
            }
            done.push((word(action), used / MB));
        }
        if done.last().is_some_and(|(word, _)| *word == "kill") {
            break;
        }
    }
    done
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Warn(_) => "warn",
        Action::Ask(Wish::Cleanup, _) => "cleanup",
        Action::Ask(Wish::Checkpoint, _) => "checkpoint",
        Action::Unanswered(_) => "unanswered",
        Action::GoOn(_) => "go on",
        Action::DoesNotFit(_) => "does not fit",
        Action::End(_) => "end",
        Action::Kill => "kill",
    }
}

fn words(done: &[(&'static str, u64)]) -> Vec<&'static str> {
    done.iter().map(|(word, _)| *word).collect()
}

#[test]
fn a_leak_climbs_rung_by_rung() {
    let done = play(LEAKY, 200);
    // The last cleanup is one that is tried again beside a leak on which the first had no effect.
    let expected = ["warn", "cleanup", "checkpoint", "cleanup", "checkpoint", "end", "kill"];
    assert_eq!(words(&done), expected, "{done:?}");
    assert!(done.iter().all(|(word, used)| *word == "kill" || *used < 1000), "{done:?}");
}

#[test]
fn a_training_without_a_leak_is_left_alone() {
    assert_eq!(play(Program { leak: 0, ..LEAKY }, 600), []);
    // Nine tenths of the budget from the first step on.
    assert_eq!(play(Program { leak: 0, base: 900 * MB, ..LEAKY }, 600), []);
}

#[test]
fn cleanups_that_help_are_enough() {
    let done = play(Program { frees: 400 * MB, ..LEAKY }, 600);
    assert!(words(&done).iter().all(|word| ["warn", "cleanup"].contains(word)), "{done:?}");
    assert!(done.len() < 30, "{done:?}");
}

#[test]
fn cleanups_that_do_not_help_become_rare() {
    let program = Program { leak: MB / 100, base: 500 * MB, can_restart: false, can_save: false, ..LEAKY };
    let cleanups = play(program, 50_000).iter().filter(|(word, _)| *word == "cleanup").count();
    assert!((2..40).contains(&cleanups), "{cleanups}");
}

#[test]
fn a_program_that_never_answers_is_ended_all_the_same() {
    let done = play(Program { answers_after: None, ..LEAKY }, 600);
    assert!(words(&done).ends_with(&["end", "kill"]), "{done:?}");
    assert!(done.iter().find(|(word, _)| *word == "end").is_some_and(|(_, used)| *used <= 1031), "{done:?}");
}

#[test]
fn a_leap_is_ended_at_once() {
    let done = play(Program { leak: 300 * MB, ..LEAKY }, 60);
    assert!(done.iter().any(|(word, used)| *word == "end" && *used <= 1100), "{done:?}");
}

#[test]
fn what_cannot_be_started_again_is_not_ended() {
    let done = play(Program { can_restart: false, ..LEAKY }, 600);
    assert!(!words(&done).contains(&"end"), "{done:?}");
    assert_eq!(words(&done).iter().filter(|word| **word == "go on").count(), 1, "{done:?}");
}

#[test]
fn what_does_not_fit_is_ended_before_its_first_step() {
    let done = play(Program { steps: false, leak: 200 * MB, ..LEAKY }, 60);
    assert_eq!(words(&done), ["does not fit", "kill"], "{done:?}");
}

#[test]
fn a_program_whose_steps_are_not_seen_is_watched_after_a_while() {
    let done = play(Program { steps: false, ..LEAKY }, 300);
    assert!(words(&done).ends_with(&["end", "kill"]), "{done:?}");
}

#[test]
fn loading_is_no_leak() {
    let mut guard = Guard::new(Ladder::USUAL, Duration::from_secs(10), 0);
    guard.can(true, true);
    guard.is_seen();
    let mut done = Vec::new();
    // 900 MB in 90 seconds, and then a training that stays there.
    for second in 0..300_u64 {
        let now = second * SECOND;
        if second > 90 {
            guard.stepped(now, second * 10);
        }
        let room = Room { limit: GuardLimit::Budget, used: 10 * MB * second.min(90), most: 1000 * MB };
        done.extend(guard.read(now, &[room], None).into_iter().map(word));
    }
    assert_eq!(done, [""; 0]);
}

#[test]
fn every_leak_is_ended_below_the_budget_or_close_to_it() {
    // Speeds, baselines and answers in all combinations.
    for leak in [1, 3, 10, 30] {
        for base in [50, 400, 800] {
            for answers_after in [None, Some(0), Some(3)] {
                let program = Program { leak: leak * MB, base: base * MB, answers_after, ..LEAKY };
                let done = play(program, 2000);
                let ends: Vec<u64> =
                    done.iter().filter(|(word, _)| *word == "end").map(|(_, used)| *used).collect();
                assert!(ends.len() == 1 && ends[0] <= 1035, "leak {leak} base {base}: {done:?}");
            }
        }
    }
}

#[test]
fn a_program_that_saves_by_itself_is_ended_when_it_has() {
    let mut guard = Guard::new(Ladder::USUAL, Duration::from_secs(10), 0);
    guard.can(false, true);
    guard.stepped(0, 30);
    let read = |guard: &mut Guard, second: u64, used: u64| {
        let room = Room { limit: GuardLimit::Budget, used: used * MB, most: 1000 * MB };
        guard.read(second * SECOND, &[room], None).into_iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!(read(&mut guard, 0, 0), [""; 0]);
    guard.saved_itself(SECOND);
    assert_eq!(read(&mut guard, 1, 500), [""; 0]);
    assert_eq!(read(&mut guard, 5, 880), ["cleanup"]);
    guard.answered(6 * SECOND, Wish::Cleanup, Answer::Freed(0));
    assert_eq!(read(&mut guard, 7, 890), [""; 0]);
    guard.saved_itself(8 * SECOND);
    assert_eq!(read(&mut guard, 8, 890), ["end"]);
}

#[test]
fn after_a_word_from_outside_nothing_is_asked_for() {
    let mut guard = Guard::new(Ladder::USUAL, Duration::from_secs(10), 0);
    guard.can(true, true);
    guard.stepped(0, 30);
    let room = |used| [Room { limit: GuardLimit::Budget, used: used * MB, most: 1000 * MB }];
    guard.read(SECOND, &room(100), None);
    guard.told_to_end(2 * SECOND);
    assert_eq!(guard.read(3 * SECOND, &room(1200), None), []);
    assert_eq!(guard.read(12 * SECOND, &room(1200), None), [Action::Kill]);
    assert_eq!(guard.read(13 * SECOND, &room(1200), None), []);
}
