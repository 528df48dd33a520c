//! Sources as Debian keeps them, each verified by its checksum.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::console::failure;
use crate::process::Cmd;

/// Asked where the mirrors that apt knows do not have it.
const MIRROR: &str = "http://deb.debian.org/debian";
const APT_HELPER: &str = "/usr/lib/apt/apt-helper";

/// One version of a package.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its version.
    pub(crate) version: &'static str,
    /// Of the archive as its authors have released it.
    pub(crate) sha256: &'static str,
    /// Its authors' own address, for when Debian has it no more.
    pub(crate) elsewhere: &'static str,
}

impl Source {
    /// Downloads and unpacks it to a folder of its name.
    pub(crate) fn unpacked(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let (archive, place) = (self.downloaded(folder)?, folder.join(self.name));
        fs::create_dir(&place).with_context(|| format!("failed to make `{}`", place.display()))?;
        Cmd::new("tar").args(["--strip-components=1", "-xf"]).arg(archive).arg("-C").arg(&place).run()?;
        Ok(place)
    }

    fn downloaded(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let Self { name, version, .. } = self;
        let archive = folder.join(format!("{name}.tar.xz"));
        let mirrors =
            Cmd::new("apt-get").args(["indextargets", "--format", "$(SITE)"]).read().unwrap_or_default();
        let mut mirrors: Vec<_> = mirrors.lines().filter(|site| site.ends_with("/debian")).collect();
        mirrors.sort_unstable();
        mirrors.push(MIRROR);
        mirrors.dedup();
        let pool = format!("pool/main/{}/{name}", &name[..1]);
        let pooled = mirrors.iter().map(|mirror| format!("{mirror}/{pool}/{name}_{version}.orig.tar.xz"));
        for place in pooled.chain([self.elsewhere.to_owned()]) {
            // apt's own helper knows the proxies and certificates that apt is configured for.
            let done = if Path::new(APT_HELPER).is_file() {
                Cmd::new(APT_HELPER).args(["download-file", &place]).arg(&archive).works()
            } else {
                Cmd::new("curl")
                    .args(["--fail", "--silent", "--location", &place, "--output"])
                    .arg(&archive)
                    .works()
            };
            if done && self.is_right(&archive)? {
                return Ok(archive);
            }
        }
        Err(failure(
            format!("the source of {name} {version} cannot be downloaded"),
            format!("its SHA-256 is {}; Debian's mirrors have it under {pool}", self.sha256),
        ))
    }

    fn is_right(&self, archive: &Path) -> anyhow::Result<bool> {
        let bytes = fs::read(archive).with_context(|| format!("failed to read `{}`", archive.display()))?;
        Ok(hex(&Sha256::digest(&bytes)) == self.sha256)
    }
}

/// Bytes as text, two digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
