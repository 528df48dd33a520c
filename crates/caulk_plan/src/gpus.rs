//! GPUs that caulk knows by name.

use serde::{Deserialize, Serialize};

use crate::near;

const TABLE: &str = include_str!("../data/gpus.toml");
/// Names that are told at most.
const MOST: usize = 6;
/// What sellers and drivers put around a name.
const DECORATION: [&str; 7] = ["nvidia", "geforce", "tesla", "gpu", "graphics", "pcie", "sxm"];

/// A GPU as it is sold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// `GTX 1650`.
    pub name: String,
    /// Memory, in GB of 2^30 bytes.
    pub memory: u64,
    /// Compute capability.
    pub capability: (u32, u32),
}

/// A name that is no GPU's of the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no GPU `{name}` in the table\nhint: {}", advice(near))]
pub struct UnknownGpu {
    /// As it was given.
    pub name: String,
    /// Names that are like it.
    pub near: Vec<String>,
}

fn advice(near: &[String]) -> String {
    let other = "`--vram 8GB` says what any other has";
    if near.is_empty() { other.into() } else { format!("{} {other}", near::hint(near, &[])) }
}

#[derive(Deserialize)]
struct Table {
    gpu: Vec<Gpu>,
}

/// All of the table.
pub fn gpus() -> Vec<Gpu> {
    toml::from_str(TABLE).map_or_else(|_| Vec::new(), |table: Table| table.gpu)
}

/// The GPU of a name: `GTX 1650`, `NVIDIA GeForce GTX 1650`, `gtx1650`, `A100 80GB`. Of several sizes the smallest, unless
/// the name says which.
///
/// # Errors
/// [`UnknownGpu`] with names that are like it.
pub fn gpu(name: &str) -> Result<Gpu, UnknownGpu> {
    let (plain, size) = (plain(name), size(name));
    let known = gpus();
    let same: Vec<&Gpu> = known.iter().filter(|gpu| near::letters(&gpu.name) == plain).collect();
    let found = match size {
        Some(size) => same.iter().find(|gpu| gpu.memory == size).copied(),
        None => same.first().copied(),
    };
    found.cloned().ok_or_else(|| UnknownGpu { name: name.into(), near: like(&plain, &known) })
}

/// Names with sizes of those whose names are most like this one.
fn like(plain: &str, known: &[Gpu]) -> Vec<String> {
    let mut names: Vec<&str> = known.iter().map(|gpu| gpu.name.as_str()).collect();
    names.dedup();
    let near = near::names(plain, names.into_iter());
    let sizes = |name: &String| known.iter().filter(move |gpu| gpu.name == *name).map(Gpu::sold_as).collect();
    near.iter().flat_map(|name| -> Vec<String> { sizes(name) }).take(MOST).collect()
}

impl Gpu {
    fn sold_as(&self) -> String {
        format!("{} {}GB", self.name, self.memory)
    }

    /// Does it compute with bfloat16?
    pub fn has_bfloat16(&self) -> bool {
        self.capability >= (8, 0)
    }
}

/// Letters and digits of the name without decoration and size.
fn plain(name: &str) -> String {
    let words = words(name).into_iter().filter(|word| {
        let decoration = word.trim_end_matches(|c: char| c.is_ascii_digit());
        !DECORATION.contains(&decoration) && size_of(word).is_none()
    });
    words.collect()
}

/// The size that the name says, in GB.
fn size(name: &str) -> Option<u64> {
    words(name).iter().find_map(|word| size_of(word))
}

fn words(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase().replace(" gb", "gb");
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(Into::into)
        .collect()
}

fn size_of(word: &str) -> Option<u64> {
    word.strip_suffix("gb")?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check(name: &str, memory: u64) {
        assert_eq!(gpu(name).map(|gpu| gpu.memory), Ok(memory), "{name}");
    }

    #[test]
    fn names_as_people_and_drivers_write_them() {
        check("GTX 1650", 4);
        check("NVIDIA GeForce GTX 1650", 4);
        check("gtx1650", 4);
        check("Tesla T4", 16);
        check("NVIDIA A100-SXM4-80GB", 80);
        check("A100", 40);
        check("RTX 4060 Ti 16 GB", 16);
        check("NVIDIA H100 80GB", 80);
    }

    #[test]
    fn names_that_are_no_gpus() {
        let error = gpu("GTX 1560").unwrap_err();
        assert!(error.near.contains(&"GTX 1650 4GB".into()), "{error:?}");
        assert!(error.to_string().contains("--vram"), "{error}");
        assert!(gpu("A100 12GB").unwrap_err().near.contains(&"A100 40GB".into()));
        assert!(gpu("").is_err() && gpu("🙂").is_err());
    }

    #[test]
    fn every_entry_is_found_by_its_full_name() {
        assert!(gpus().len() > 90);
        for each in gpus() {
            assert_eq!(gpu(&each.sold_as()), Ok(each));
        }
    }
}
