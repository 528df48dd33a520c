//! `caulk doctor` on this machine, on recorded accounts and on logs.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::os::unix::fs::PermissionsExt;

use support::Place;

#[test]
fn this_machine_is_looked_at() {
    let place = Place::new();
    let ended = place.caulk(&["doctor", "--python", "/nowhere/python", "--format", "json"]);
    let document = ended.json();
    let checks = document["checks"].as_array().expect("a list");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    for name in
        ["memory", "swap", "shared-memory", "disk", "open-files", "processors", "python", "environment"]
    {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
    assert!(document["machine"]["memory"]["total"].as_u64() > Some(0));
    let text = place.caulk(&["doctor", "--python", "/nowhere/python"]);
    assert!(text.out.contains("`/nowhere/python` cannot be started"), "{text:#?}");
}

#[test]
fn variables_left_from_debugging_are_a_problem() {
    let place = Place::new();
    let output = place
        .command(&["doctor", "--python", "/nowhere/python"])
        .env("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("PYTORCH_NO_CUDA_MEMORY_CACHING=1"));
}

#[test]
fn a_jobs_account_is_read() {
    let place = Place::new();
    let sacct = place.write(
        "bin/sacct",
        "#!/bin/sh\necho '4711|OUT_OF_MEMORY|0:125|02:11:40|80G|||mem=80G|train'\n\
         echo '4711.batch|OUT_OF_MEMORY|0:125|02:11:40||83842308K|95123456K|mem=80G|batch'\n",
    );
    std::fs::set_permissions(sacct, std::fs::Permissions::from_mode(0o755)).expect("a writable folder");
    let ask = |path: &std::path::Path| {
        let output = place.command(&["doctor", "--job", "4711"]).env("PATH", path).output();
        let output = output.expect("the binary starts");
        (
            output.status.code(),
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let (code, said) = ask(&place.path("bin"));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("80.0 GB") && said.contains("OUT_OF_MEMORY") && said.contains("caulk run"),
        "{said}"
    );
    let (code, said) = ask(&place.path("nothing"));
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("belongs to SLURM"), "{said}");
}

#[test]
fn logs_that_tell_of_memory_that_ran_out() {
    let place = Place::new();
    place.write(
        "logs/a.out",
        "epoch 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 MiB\n",
    );
    place.write("logs/b/c.err", "all is well\n");
    let ended = place.caulk(&["doctor", "--logs", "logs"]).code(1);
    assert!(ended.out.contains("logs/a.out:2: torch.OutOfMemoryError"), "{ended:#?}");
    assert!(ended.out.contains("1 of 2 files tell"), "{ended:#?}");
    place.caulk(&["doctor", "--logs", "logs/b"]).code(0).prints("0 of 1 files");
    place.caulk(&["doctor", "--logs", "nothing"]).code(125).says("`nothing` is not there");
}

#[test]
fn what_is_no_interpreter_is_called_so() {
    let place = Place::new();
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/caulk");
    let asked = |script: &str| {
        let path = place.write("python", script);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a writable folder");
        let mut command = place.command(&["selftest", "--python", &path.to_string_lossy()]);
        let output = command.env("CAULK_PACKAGE", &package).output().expect("the binary starts");
        support::Ended::from(output).code(125).says("hint: name the interpreter").err
    };
    let silent = asked("#!/bin/sh\n");
    assert!(silent.contains("is no Python interpreter: it ended with exit code 0 and no answer"), "{silent}");
    let talks = asked("#!/bin/sh\necho hello; echo this is not Python >&2\n");
    assert!(talks.contains("exit code 0 and no answer but: this is not Python"), "{talks}");
    let fails = asked("#!/bin/sh\nexit 3\n");
    assert!(fails.contains("ended with exit code 3 and said nothing"), "{fails}");
    let says = asked("#!/bin/sh\necho broken >&2; echo >&2; exit 3\n");
    assert!(says.contains("ended with exit code 3: broken"), "{says}");
    let dies = asked("#!/bin/sh\nkill -SEGV $$\n");
    assert!(dies.contains("was ended by signal 11 and said nothing"), "{dies}");
}
