//! Which part of a data set a program prepares.

/// Which part of the videos one program prepares: every `count`-th from the `index`-th on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// Programs that share the work.
    pub count: u32,
}

impl Shard {
    /// Whether the video at that place of the manifest is in this part.
    pub(crate) fn has(self, at: usize) -> bool {
        at as u64 % u64::from(self.count.max(1)) == u64::from(self.index)
    }

    /// Names of files that each shard has for itself.
    pub(crate) fn file(self, name: &str, ending: &str) -> String {
        if self.count == 1 {
            format!("{name}{ending}")
        } else {
            format!("{name}-{}-of-{}{ending}", self.index, self.count)
        }
    }
}
