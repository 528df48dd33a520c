//! `caulk plan` for presets, model files and machines; nothing of it needs Python.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use support::Place;
use support::terminal::Session;

const SMALL: [&str; 4] = ["--gpu", "GTX 1650", "--ram", "16GB"];

#[test]
fn a_preset_is_planned_for_a_small_card() {
    let place = Place::new();
    let arguments =
        [&["plan", "--preset", "vit_gru", "--output", "safe.yaml", "--batch", "16"], &SMALL[..]].concat();
    let ended = place.caulk(&arguments).code(0).prints("predicted, not measured");
    assert!(ended.out.contains("16-mixed") && ended.out.contains("beyond the plan"), "{ended:#?}");
    let yaml = place.read("safe.yaml");
    for line in ["schema: 1", "loader:", "  precision: \"16-mixed\"  # was 32-true: ", "# beyond the plan:"] {
        assert!(yaml.contains(line), "{line} is missing: {yaml}");
    }
}

#[test]
fn where_figures_come_from_is_said_to_who_asks() {
    let place = Place::new();
    let origins = ["derivatives.yaml", "where the figures come from", "computed from its layers"];
    for arguments in [&SMALL[..], &[]] {
        let arguments = [&["plan", "--preset", "vit_gru"], arguments].concat();
        let brief = place.caulk(&arguments).code(0);
        assert!(origins.iter().all(|origin| !brief.out.contains(origin)), "{brief:#?}");
        let explained = place.caulk(&[&arguments[..], &["--explain"]].concat()).code(0);
        assert!(origins.iter().all(|origin| explained.out.contains(origin)), "{explained:#?}");
    }
    let brief = place.caulk(&[&["plan", "--preset", "vit_gru"], &SMALL[..]].concat());
    brief.prints("`--explain` says where each figure comes from");
    let measured = ["plan", "--ram", "64GB", "--explain", "--", "true"];
    place.caulk(&measured).code(0).prints("measured; up to a quarter more");
}

#[test]
fn a_training_that_takes_its_time_shows_how_far_it_is() {
    let place = Place::new();
    let words =
        |options: &[&'static str]| [&["plan", "--seconds", "3"], options, &["--", "sleep", "60"]].concat();
    let says = "caulk: plan: 0 of 20 steps, 2 of 3 s, ";
    let mut session = Session::start(&mut place.command(&words(&[])));
    session.read_until(says);
    session.read_until("the training made no step");
    assert_eq!(session.end().code(), Some(125));
    place.caulk(&words(&["--progress", "line"])).code(125).says(says);
    for quiet in [&[][..], &["--progress", "none"]] {
        let ended = place.caulk(&words(quiet)).code(125);
        assert!(!ended.err.contains("caulk: plan: "), "{ended:#?}");
    }
}

#[test]
fn a_model_that_takes_its_time_shows_that_it_does() {
    let place = Place::new();
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/caulk");
    let slow = place.write("python", "#!/bin/sh\nsleep 3\necho 'caulk:{\"error\": \"not this one\"}'\n");
    place.allow("python", 0o755);
    let python = slow.to_string_lossy();
    let words = ["plan", "--model", "net:make", "--input", "3", "--vram", "4GB", "--python", &python];
    let mut command = place.command(&words);
    let mut session = Session::start(command.env("CAULK_PACKAGE", package));
    session.read_until("caulk: plan: the model is run on tensors without contents");
    session.read_until("tensors without contents: 2 s");
    session.read_until("not this one");
    assert_eq!(session.end().code(), Some(125));
}

#[test]
fn workers_of_a_pool_are_no_loaders() {
    let place = Place::new();
    let pool = "import multiprocessing, time\n\
                def work(number):\n    data = b'x' * (64 << 20)\n    time.sleep(1)\n    return data[0]\n\
                with multiprocessing.get_context('fork').Pool(3) as pool:\n    print(sum(pool.map(work, range(6))))\n";
    place.write("pool.py", pool);
    let words = ["plan", "--ram", "100MB", "--output", "safe.yaml", "--", "python3", "pool.py"];
    let ended = place.caulk(&words).code(1).prints("It does not fit on the host: ");
    assert!(!ended.out.contains("num_workers"), "{ended:#?}");
    let yaml = place.read("safe.yaml");
    assert!(!yaml.contains("num_workers") && yaml.contains("loader:  # none was seen"), "{yaml}");
    // Applied, it changes nothing and stops nobody.
    let ended = place.caulk(&["run", "--apply", "safe.yaml", "sh", "-c", "exit 4"]).code(4);
    ended.says("the plan sets nothing of a loader: the program runs as it is");
}

#[test]
fn programs_get_every_figure_with_its_interval() {
    let place = Place::new();
    let arguments = [&["plan", "--preset", "slowfast", "--format", "json"], &SMALL[..]].concat();
    let document = place.caulk(&arguments).code(0).json();
    let batch = document["training"]["batch_size"].as_u64().expect("a number");
    let accumulation = document["training"]["accumulate_grad_batches"].as_u64().expect("a number");
    assert_eq!(batch * accumulation, 16, "{document:#}");
    assert_eq!(document["basis"], "predicted, not measured");
    for part in document["after"]["memory"]["gpu"].as_array().expect("a list") {
        let bytes = |bound: &str| part["bytes"][bound].as_u64().expect("a number");
        assert!(bytes("low") <= bytes("likely") && bytes("likely") <= bytes("high"), "{part}");
        assert!(part["source"].as_str().is_some_and(|source| !source.is_empty()), "{part}");
    }
    let saving = |change: &serde_json::Value| change["gpu_saved"].as_f64().expect("a number") >= 0.0;
    assert!(
        document["advice"].as_array().is_some_and(|advice| advice.len() > 4 && advice.iter().all(saving))
    );
}

#[test]
fn without_a_machine_cards_of_all_sizes_are_tried() {
    let place = Place::new();
    place.caulk(&["plan", "--preset", "x3d"]).code(0).prints("4 GB").prints("80 GB").prints("checkpointing");
}

#[test]
fn a_model_by_its_layers() {
    let place = Place::new();
    let printed = place.caulk(&["plan", "--print-config", "naive_cnn"]).code(0);
    place.write("model.toml", &printed.out.replace("naive_cnn", "mine"));
    let arguments = ["plan", "--config", "model.toml", "--vram", "8GB", "--size", "112"];
    place.caulk(&arguments).code(0).prints("mine: ").prints("8.00 GB");
    place.write("broken.toml", "name = \"x\"\nlayers = [\"rleu\"]\n[input]\nshape = [4]\n");
    let arguments = ["plan", "--config", "broken.toml", "--vram", "8GB"];
    place.caulk(&arguments).code(125).says("unknown variant `rleu`").says("--print-config");
    place.caulk(&["plan", "--config", "nothing.toml"]).code(125).says("nothing.toml");
}

#[test]
fn this_machine_is_planned_for_without_a_gpu() {
    let place = Place::new();
    let arguments = ["plan", "--preset", "naive_cnn", "--batch", "4", "--auto", "--python", "/bin/false"];
    place.caulk(&arguments).code(125).says("/bin/false");
    // An interpreter without torch sees no GPU.
    let script = "#!/bin/sh\necho 'caulk:{\"version\": \"3.11.7\", \"executable\": \"python\", \"cuda_available\": false, \"gpus\": []}'\n";
    let python = place.write("bin/python", script);
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a writable folder");
    let path = python.to_string_lossy().into_owned();
    let arguments =
        ["plan", "--preset", "naive_cnn", "--batch", "4", "--ram", "64GB", "--auto", "--python", &path];
    place.caulk(&arguments).code(0).says("torch sees no GPU here").prints("64.0 GB of host memory");
}

#[test]
fn what_does_not_fit_is_said() {
    let place = Place::new();
    let arguments = ["plan", "--preset", "vit_gru", "--vram", "1GB", "--ram", "16GB"];
    place.caulk(&arguments).code(1).prints("does not fit even so").prints("model width and depth");
}

#[test]
fn absurd_arguments_are_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str], code: i32, text: &str| {
        place.caulk(&[&["plan", "--preset", "svm"], arguments].concat()).code(code).says(text);
    };
    refused(&["--gpu", "GTX 1560"], 125, "`GTX 1650 4GB`");
    refused(&["--gpu", ""], 125, "--vram");
    refused(&["--vram", "0"], 2, "not a size");
    refused(&["--vram", "80%"], 2, "not a size");
    refused(&["--vram", "4GB", "--gpu", "T4"], 2, "cannot be used with");
    refused(&["--batch", "0"], 2, "65536");
    refused(&["--batch", "-4"], 2, "");
    refused(&["--video", "1920x1080"], 2, "width x height x frames");
    refused(&["--size", "7", "--vram", "4GB"], 125, "windows of 16");
    place.caulk(&["plan", "--preset", "swm"]).code(125).says("did you mean `svm`?");
    place.caulk(&["plan", "--model", "a:b"]).code(2).says("--input");
    place.caulk(&["plan", "--model", "a", "--input", "3"]).code(125).says("`package.net:make`");
    place.caulk(&["plan", "--vram", "4GB"]).code(2).says("--preset");
}
