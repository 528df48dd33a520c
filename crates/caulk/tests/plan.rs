//! `caulk plan` for presets, model files and machines; nothing of it needs Python.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use support::Place;

const SMALL: [&str; 4] = ["--gpu", "GTX 1650", "--ram", "16GB"];

#[test]
fn a_preset_is_planned_for_a_small_card() {
    let place = Place::new();
    let arguments =
        [&["plan", "--preset", "vit_gru", "--output", "safe.yaml", "--batch", "16"], &SMALL[..]].concat();
    let ended = place.caulk(&arguments).code(0).prints("predicted, not measured").prints("derivatives.yaml");
    assert!(ended.out.contains("16-mixed") && ended.out.contains("beyond the plan"), "{ended:#?}");
    let yaml = place.read("safe.yaml");
    for line in ["schema: 1", "loader:", "  precision: \"16-mixed\"  # was 32-true: ", "# beyond the plan:"] {
        assert!(yaml.contains(line), "{line} is missing: {yaml}");
    }
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
