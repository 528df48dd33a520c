//! FFmpeg as the worker `caulk-clip` links it: one pinned version, built with what decoding video needs and nothing else.
//!
//! The sources are Debian's, checked by their checksums. The build is in the user's cache under a key of all its inputs,
//! so that every checkout on a machine shares it; `.cache/ffmpeg` leads there, and `caulk-clips/.cargo/config.toml`
//! points the bindings to it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sha2::{Digest, Sha256};

use super::dav1d;
use super::folder::FOLDER;
use crate::console::{self, OrHint};
use crate::debian::{Source, hex};
use crate::process::Cmd;
use crate::python::installed_by_apt;
use crate::workspace::Workspace;

/// Licences of what is built here.
pub(crate) const LICENCES: [&str; 2] = ["COPYING.LGPLv2.1", "COPYING.dav1d"];

const FFMPEG: Source = Source {
    name: "ffmpeg",
    version: "5.1.9",
    sha256: "d9b593bb2ba93d4b50f74177e0cdcd41747e708596367deed0c30348a71dd176",
    elsewhere: "https://ffmpeg.org/releases/ffmpeg-5.1.9.tar.xz",
};
const LINK: &str = ".cache/ffmpeg";

/// No network, no programs, no threads (a worker decodes one video on one), nothing that happens to be installed; no GPL.
const CONFIGURE: [&str; 18] = [
    "--disable-everything",
    "--disable-autodetect",
    "--disable-network",
    "--disable-programs",
    "--disable-doc",
    "--disable-debug",
    "--disable-avdevice",
    "--disable-avfilter",
    "--disable-swresample",
    "--disable-postproc",
    "--disable-pthreads",
    "--enable-pic",
    "--enable-libdav1d",
    "--enable-decoder=h264,hevc,libdav1d,mpeg1video,mpeg2video,mpeg4,msmpeg4v1,msmpeg4v2,msmpeg4v3,h263,flv,vp6f,vp8,vp9,theora,\
        wmv1,wmv2,wmv3,vc1,mjpeg,prores,dnxhd,dvvideo,ffv1,huffyuv,rawvideo,gif",
    "--enable-parser=h264,hevc,av1,mpegvideo,mpeg4video,h263,vp8,vp9,vc1,mjpeg,dnxhd",
    "--enable-demuxer=mov,matroska,avi,mpegts,mpegps,mpegvideo,flv,asf,ogg,h264,hevc,obu,ivf,m4v,mjpeg,gif,mxf,dv",
    "--enable-bsf=extract_extradata,vp9_superframe_split,mpeg4_unpack_bframes",
    "--enable-protocol=file",
];

/// Headers that a compiler brings along; the one that reads FFmpeg's for the bindings comes without.
const COMPILERS: [&str; 8] =
    ["float.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint-gcc.h", "stdint.h", "syslimits.h"];

/// Programs and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 8] = [
    ("gcc", "gcc"),
    ("make", "make"),
    ("meson", "meson"),
    ("nasm", "nasm"),
    ("ninja", "ninja-build"),
    ("pkg-config", "pkg-config"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];
const LIBCLANG: &str = "libclang1";

/// A licence, for the wheel.
pub(crate) fn licence(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.path(LINK).join("share").join(name)
}

/// How it was built and how another one takes its place, for the wheel.
pub(crate) fn notes() -> String {
    include_str!("../../../caulk-clips/ffmpeg/BUILD.md.in")
        .replace("{version}", FFMPEG.version)
        .replace("{sha256}", FFMPEG.sha256)
        .replace("{dav1d}", dav1d::SOURCE.version)
        .replace("{dav1d-sha256}", dav1d::SOURCE.sha256)
        .replace("{meson}", &dav1d::OPTIONS.join(" "))
        .replace("{configure}", &CONFIGURE.join(" \\\n    "))
}

/// Builds FFmpeg unless this machine has it.
///
/// # Errors
/// If it cannot be built here, with the reason.
pub(crate) fn prepare(workspace: &Workspace) -> anyhow::Result<()> {
    let built = cache().join(format!("ffmpeg-{}-{}", FFMPEG.version, key()));
    if !built.is_dir() {
        installed(&PROGRAMS)?;
        build(&built)?;
    }
    // The bindings' generator needs it, wherever FFmpeg was built.
    if !has_libclang() {
        installed_by_apt(&[LIBCLANG])?;
    }
    link(workspace, &built)
}

/// Everything that decides what is built.
fn key() -> String {
    let mut hash = Sha256::new();
    let sources = [FFMPEG.sha256, dav1d::SOURCE.sha256, std::env::consts::ARCH];
    for part in sources.iter().chain(&dav1d::OPTIONS).chain(&CONFIGURE) {
        hash.update(part);
        hash.update([0]);
    }
    hex(&hash.finalize()[..6])
}

/// The user's cache.
fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    home.unwrap_or_else(std::env::temp_dir).join("caulk")
}

fn installed(programs: &[(&str, &'static str)]) -> anyhow::Result<()> {
    let missing = programs.iter().filter(|(program, _)| !Cmd::new(*program).arg("--version").works());
    let missing: Vec<_> = missing.map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { installed_by_apt(&missing) }
}

/// Whether the bindings' generator will find the library: beside others, or below LLVM's own folders.
fn has_libclang() -> bool {
    let is_it = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_libclang);
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let llvm = entries("/usr/lib".into()).map(|entry| entry.path().join("lib"));
    let machine = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let folders = ["/usr/lib64".into(), "/usr/local/lib".into(), machine].into_iter().chain(llvm);
    std::env::var_os("LIBCLANG_PATH").is_some() || folders.flat_map(entries).any(|entry| is_it(&entry.path()))
}

/// By the file's name. `libclang-cpp` is another library: it comes along with other packages and does not have the interface
/// that the generator loads.
fn is_libclang(name: &str) -> bool {
    name.starts_with("libclang.so")
        || name.starts_with("libclang-") && name.contains(".so") && !name.starts_with("libclang-cpp")
}

fn build(built: &Path) -> anyhow::Result<()> {
    console::step(format!(
        "building FFmpeg {} and dav1d (4 minutes on two cores, once per machine)",
        FFMPEG.version
    ));
    let parent = built.parent().unwrap_or(built);
    fs::create_dir_all(parent).with_context(|| format!("failed to make `{}`", parent.display()))?;
    // Beside its place: it gets there whole or not at all.
    let work = tempfile::tempdir_in(parent).context("failed to make a folder to build in")?;
    let result = work.path().join("result");
    let av1 = dav1d::build(work.path())?;
    let source = FFMPEG.unpacked(work.path())?;
    Cmd::new("sh")
        .args(["./configure", "--quiet"])
        .arg(format!("--prefix={}", result.display()))
        .args(CONFIGURE)
        .env("PKG_CONFIG_LIBDIR", av1.join("lib/pkgconfig"))
        .folder(&source)
        .run()
        .or_hint("FFmpeg cannot be configured", "see its `ffbuild/config.log`")?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    Cmd::new("make")
        .args(["--silent".into(), format!("--jobs={jobs}"), "install".into()])
        .folder(&source)
        .run()
        .or_hint("FFmpeg cannot be built", "see above")?;
    dav1d::join(&av1, &result)?;
    complete(&source, &result)?;
    // Another checkout may have been faster.
    fs::rename(&result, built).or_else(|error| if built.is_dir() { Ok(()) } else { Err(error) })?;
    Ok(())
}

/// What the bindings and the licences need beside headers and libraries.
fn complete(source: &Path, result: &Path) -> anyhow::Result<()> {
    let share = result.join("share");
    fs::create_dir_all(&share).context("failed to make a folder for the licence")?;
    fs::copy(source.join("COPYING.LGPLv2.1"), share.join("COPYING.LGPLv2.1")).context("no licence")?;
    let av1 = source.with_file_name(dav1d::SOURCE.name).join("COPYING");
    fs::copy(av1, share.join("COPYING.dav1d")).context("no licence of dav1d")?;
    for name in COMPILERS {
        let file = Cmd::new("gcc").arg(format!("-print-file-name=include/{name}")).read()?;
        fs::copy(file.trim(), result.join("include").join(name)).with_context(|| format!("no `{name}`"))?;
    }
    Ok(())
}

fn link(workspace: &Workspace, built: &Path) -> anyhow::Result<()> {
    let link = workspace.path(LINK);
    if fs::read_link(&link).is_ok_and(|target| target == built) {
        return Ok(());
    }
    // What has been linked with another FFmpeg looks no older to Cargo than this one.
    for profile in ["dev", "develop", "release"] {
        Cmd::cargo()
            .args(["clean", "--quiet", "--package", "ffmpeg-sys-next", "--profile", profile])
            .folder(workspace.path(FOLDER))
            .run()?;
    }
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent).with_context(|| format!("failed to make `{}`", parent.display()))?;
    }
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(built, &link).with_context(|| format!("failed to link `{}`", link.display()))
}

#[test]
fn only_the_library_that_is_loaded_counts() {
    for name in ["libclang.so", "libclang.so.1", "libclang-14.so.1", "libclang-14.so.14.0.6"] {
        assert!(is_libclang(name), "{name}");
    }
    for name in ["libclang-cpp.so.14", "libclangBasic.a", "libclang_rt.asan.so"] {
        assert!(!is_libclang(name), "{name}");
    }
}

#[test]
fn the_notes_have_no_gaps() {
    let notes = notes();
    assert!(!notes.contains('{') && notes.contains("--enable-libdav1d"), "{notes}");
}
