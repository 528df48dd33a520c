//! `caulk clean` in projects of its own.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use support::Place;

fn project() -> Place {
    let place = Place::new();
    place.write("pyproject.toml", "[tool.caulk.clean]\nfolders = ['outputs']\nkeep = ['outputs/best.txt']\n");
    place.write("outputs/events.out", "x");
    place.write("outputs/best.txt", "x");
    place.write("models/last.ckpt", "x");
    place
}

#[test]
fn nothing_goes_without_being_told_to() {
    let place = project();
    let ended = place.caulk(&["clean", "--older-than", "0h", "--models"]).code(0);
    assert!(
        ended.out.contains("1 file in `outputs`") && ended.out.contains("1 file in `models`"),
        "{ended:#?}"
    );
    assert!(ended.out.contains("`outputs/best.txt`: the settings keep it"), "{ended:#?}");
    assert!(ended.err.contains("nothing was removed"), "{ended:#?}");
    assert!(place.path("outputs/events.out").exists());

    let ended = place.caulk(&["clean", "--older-than", "0h", "--apply"]).code(0);
    assert!(ended.out.contains("freed: 1 file removed"), "{ended:#?}");
    assert!(!place.path("outputs/events.out").exists() && place.path("models/last.ckpt").exists());
    let ended = place.caulk(&["clean", "--older-than", "0h", "--format", "json"]).code(0);
    assert_eq!((ended.json()["bytes"].as_u64(), ended.json()["removed"].is_null()), (Some(0), true));
}

#[test]
fn what_would_go_is_listed_with_its_size() {
    let place = Place::new();
    place.write("pyproject.toml", "");
    place.write("out/old/a.bin", &"x".repeat(200_000));
    place.write("out/old/line\nbreak.bin", "x");
    place.write("out/kept.csv", "x");
    std::fs::create_dir_all(place.path("empty/deep")).expect("a writable folder");
    for arguments in [&["out", "empty"][..], &["./out", "out/old", "out", "empty"]] {
        let words = [&["clean", "--older-than", "0h"], arguments].concat();
        let ended = place.caulk(&words).code(0).prints("2 files in `out`").says("nothing was removed");
        let line = |end: &str| {
            let found: Vec<&str> = ended.out.lines().filter(|line| line.ends_with(end)).collect();
            assert_eq!(found.len(), 1, "{end}: {ended:#?}");
            found[0].trim_start().trim_end_matches(end).trim_end().to_owned()
        };
        assert!(line("out/old/a.bin").ends_with(" KB") && line("out/old/a.bin").len() < 10, "{ended:#?}");
        line("out/old/line break.bin");
        assert_eq!(
            (line(" out/old/"), line(" empty/deep/"), line(" empty/")),
            ("-".into(), "-".into(), "-".into())
        );
        assert!(!ended.out.contains("    out/kept.csv"), "{ended:#?}");
    }
    let document = place.caulk(&["clean", "--older-than", "0h", "out", "--format", "json"]).code(0).json();
    assert_eq!(document["folders"], serde_json::json!(["out/old"]));
    let ended = place.caulk(&["clean", "--older-than", "0h", "out", "empty", "--apply"]).code(0);
    assert!(!ended.out.contains("a.bin") && !place.path("out/old").exists() && !place.path("empty").exists());
    place.caulk(&["clean", "--older-than", "0h", "out"]).code(0).prints("nothing to remove");
}

#[test]
fn what_was_just_written_stays() {
    let place = project();
    let ended = place.caulk(&["clean", "--apply"]).code(0);
    assert!(ended.out.contains("it was written lately"), "{ended:#?}");
    assert!(place.path("outputs/events.out").exists());
}

#[test]
fn wrong_places_and_settings_are_told() {
    let place = project();
    let ended = place.caulk(&["clean", ".."]).code(125);
    assert!(ended.err.contains("does not lie inside the project"), "{ended:#?}");
    place.caulk(&["clean", "--older-than", "soon"]).code(2);
    place.write("pyproject.toml", "[tool.caulk.clean]\nfolder = ['outputs']\n");
    let ended = place.caulk(&["clean"]).code(125);
    assert!(ended.err.contains("unknown field `folder`"), "{ended:#?}");
}
