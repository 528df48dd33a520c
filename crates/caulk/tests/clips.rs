//! `caulk clips` hands over to `caulk-clips`, wherever that is.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// `caulk clips decode -x` in a folder that has a copy of the command, with this path.
fn run(folder: &Path, path: &str) -> (Option<i32>, String) {
    let command = folder.join("caulk");
    if !command.exists() {
        fs::copy(env!("CARGO_BIN_EXE_caulk"), &command).expect("a copy of the command");
    }
    let ended = Command::new(command).args(["clips", "decode", "-x"]).env("PATH", path).output();
    let Output { status, stdout, stderr } = ended.expect("the command starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Prints its arguments, and which signals it ignores.
fn stub(file: &Path) {
    let text = "#!/bin/sh\necho \"got $*\"\n/bin/grep SigIgn /proc/$$/status\nexit 7\n";
    fs::create_dir_all(file.parent().expect("a folder")).expect("a writable folder");
    fs::write(file, text).expect("a writable folder");
    fs::set_permissions(file, Permissions::from_mode(0o755)).expect("a file of ours");
}

#[test]
fn a_package_that_is_not_there_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    fs::write(folder.join("file"), "").expect("a writable folder");
    fs::create_dir(folder.join("caulk-clips")).expect("a writable folder");
    for path in ["", "/nowhere", &format!("{0}/file:{0}:/nowhere", folder.display())] {
        let (code, text) = run(folder, path);
        assert_eq!(code, Some(127), "{path}: {text}");
        assert!(text.contains("`caulk-clips` is not installed\nhint: install it: `pip install"), "{text}");
    }
}

#[test]
fn it_is_found_beside_the_command_or_on_the_path_and_gets_every_argument() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (bin, other) = (folder.path().join("bin"), folder.path().join("other"));
    stub(&other.join("caulk-clips"));
    fs::create_dir(&bin).expect("a writable folder");
    let path = format!("/nowhere:{}", other.display());
    let (code, text) = run(&bin, &path);
    assert_eq!((code, text.lines().next()), (Some(7), Some("got decode -x")), "{text}");
    // SIGXFSZ is the 25th: caulk ignores it, and hands on what it was started with.
    let ignored = text.rsplit_once('\t').map(|(_, mask)| mask.trim()).expect("a mask");
    let ignored = u64::from_str_radix(ignored, 16).expect("a mask");
    assert_eq!(ignored & (1 << 24), 0, "{text}");
    stub(&bin.join("caulk-clips"));
    assert_eq!(run(&bin, "/nowhere").0, Some(7));
}
