//! The criteria by name.

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The command ended well, or was ended by caulk.
    Ended,
    /// Memory returns to its baseline.
    Stable,
    /// The peak of the process tree is below the budget.
    HostBelowBudget,
    /// GPU memory does not grow and has room.
    GpuNotFilling,
    /// Memory did not run out.
    NoOom,
    /// No line or container keeps more with every epoch.
    NoLineAllocatesEverMore,
    /// Figures are closed.
    FiguresClosed,
    /// Gradients are cleared between steps.
    GradientsCleared,
    /// Tensors are stored without their graphs.
    DetachedWhenStored,
    /// Device tensors do not stay on the device.
    DeviceTensorsMoved,
    /// Data loader workers do not grow.
    WorkersFlat,
    /// Open files do not grow in number.
    FilesFlat,
    /// Threads do not grow in number.
    ThreadsFlat,
    /// The command restarts from a checkpoint.
    RestartsFromCheckpoint,
}

impl Criterion {
    /// All of them, in the order of the checklist.
    pub const ALL: [Self; 14] = [
        Self::Ended,
        Self::Stable,
        Self::HostBelowBudget,
        Self::GpuNotFilling,
        Self::NoOom,
        Self::NoLineAllocatesEverMore,
        Self::FiguresClosed,
        Self::GradientsCleared,
        Self::DetachedWhenStored,
        Self::DeviceTensorsMoved,
        Self::WorkersFlat,
        Self::FilesFlat,
        Self::ThreadsFlat,
        Self::RestartsFromCheckpoint,
    ];

    /// Name in checklists and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Stable => "stable",
            Self::HostBelowBudget => "host-below-budget",
            Self::GpuNotFilling => "gpu-not-filling",
            Self::NoOom => "no-oom",
            Self::NoLineAllocatesEverMore => "no-line-allocates-ever-more",
            Self::FiguresClosed => "figures-closed",
            Self::GradientsCleared => "gradients-cleared",
            Self::DetachedWhenStored => "detached-when-stored",
            Self::DeviceTensorsMoved => "device-tensors-moved",
            Self::WorkersFlat => "workers-flat",
            Self::FilesFlat => "files-flat",
            Self::ThreadsFlat => "threads-flat",
            Self::RestartsFromCheckpoint => "restarts-from-checkpoint",
        }
    }

    /// One line for people.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Ended => "the command ended well",
            Self::Stable => "memory returns to its baseline in every epoch",
            Self::HostBelowBudget => "peak memory of all processes is below the budget",
            Self::GpuNotFilling => "GPU memory does not grow and stays below its limit",
            Self::NoOom => "memory did not run out",
            Self::NoLineAllocatesEverMore => "no line or container keeps more with every epoch",
            Self::FiguresClosed => "figures are closed",
            Self::GradientsCleared => "gradients are cleared between steps",
            Self::DetachedWhenStored => "tensors are stored without their autograd graphs",
            Self::DeviceTensorsMoved => "tensors do not stay on the device when they are done with",
            Self::WorkersFlat => "data loader workers do not grow",
            Self::FilesFlat => "open files do not grow in number",
            Self::ThreadsFlat => "threads do not grow in number",
            Self::RestartsFromCheckpoint => "the command continues from a checkpoint",
        }
    }

    /// How its limit is written; `None` for a criterion without one.
    pub const fn limit_unit(self) -> Option<&'static str> {
        match self {
            Self::Stable => Some("bytes per epoch, step or second, such as \"1MB\""),
            Self::HostBelowBudget => Some("bytes, such as \"50GB\""),
            Self::GpuNotFilling => Some("share of the device, such as \"95%\""),
            _ => None,
        }
    }
}

impl std::fmt::Display for Criterion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_documents() {
        for criterion in Criterion::ALL {
            let text = format!("name = \"{criterion}\"");
            let table: std::collections::BTreeMap<String, Criterion> = toml::from_str(&text).expect("a name");
            assert_eq!(table["name"], criterion);
        }
    }
}
