//! dav1d, which decodes AV1 for FFmpeg: built first, and put into FFmpeg's own library, so that linking that brings both.

use std::path::{Path, PathBuf};

use crate::console::OrHint;
use crate::debian::Source;
use crate::process::Cmd;

/// Newer than Debian 12's: that one's is mended by patches.
pub(crate) const SOURCE: Source = Source {
    name: "dav1d",
    version: "1.5.1",
    sha256: "401813f1f89fa8fd4295805aa5284d9aed9bc7fc1fdbe554af4292f64cbabe21",
    elsewhere: "https://downloads.videolan.org/pub/videolan/dav1d/1.5.1/dav1d-1.5.1.tar.xz",
};

/// A static library and nothing else.
pub(crate) const OPTIONS: [&str; 7] = [
    "--buildtype=release",
    "--default-library=static",
    "--libdir=lib",
    "-Db_staticpic=true",
    "-Denable_tools=false",
    "-Denable_tests=false",
    "-Dxxhash_muxer=disabled",
];
const HINT: &str = "see above";

/// Builds it in a folder and returns the path.
pub(crate) fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    let source = SOURCE.unpacked(folder)?;
    let result = folder.join("dav1d-result");
    Cmd::new("meson")
        .arg("setup")
        .args(OPTIONS)
        .arg(format!("--prefix={}", result.display()))
        .arg("build")
        .folder(&source)
        .run()
        .or_hint("dav1d cannot be configured", HINT)?;
    Cmd::new("ninja")
        .args(["--quiet", "-C", "build", "install"])
        .folder(&source)
        .run()
        .or_hint("dav1d cannot be built", HINT)?;
    Ok(result)
}

/// Puts its objects into FFmpeg's library of decoders.
pub(crate) fn join(built: &Path, ffmpeg: &Path) -> anyhow::Result<()> {
    let (from, into) = (built.join("lib/libdav1d.a"), ffmpeg.join("lib/libavcodec.a"));
    let script = format!("open {}\naddlib {}\nsave\nend\n", into.display(), from.display());
    let file = built.join("join.mri");
    std::fs::write(&file, script)?;
    Cmd::new("sh")
        .args(["-c", "ar -M < \"$1\"", "sh"])
        .arg(&file)
        .run()
        .or_hint("dav1d cannot be put into FFmpeg's library", HINT)
}
