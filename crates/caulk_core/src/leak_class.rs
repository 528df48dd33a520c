//! The classes of leaks, by effect. Rules of `check` and findings of `run` share their names.

use serde::{Deserialize, Serialize};

/// What a group of classes has in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// An autograd graph is kept alive.
    Graph,
    /// A container or cache grows.
    Container,
    /// A reference keeps more than it shows.
    Reference,
    /// Figures are kept.
    Figure,
    /// Data loading multiplies memory.
    Loading,
    /// Media are decoded or described in full.
    Media,
    /// Memory returns, but its high-water mark is needless.
    Peak,
    /// Things outside the heap pile up.
    Resource,
    /// Only visible in a running process.
    RunTime,
}

impl Group {
    /// Every group.
    pub const ALL: &'static [Self] = &[
        Self::Graph,
        Self::Container,
        Self::Reference,
        Self::Figure,
        Self::Loading,
        Self::Media,
        Self::Peak,
        Self::Resource,
        Self::RunTime,
    ];

    /// Kebab-case name, as settings write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Container => "container",
            Self::Reference => "reference",
            Self::Figure => "figure",
            Self::Loading => "loading",
            Self::Media => "media",
            Self::Peak => "peak",
            Self::Resource => "resource",
            Self::RunTime => "run-time",
        }
    }
}

macro_rules! classes {
    ($($group:ident { $($variant:ident $name:literal $summary:literal,)* })*) => {
        /// A pattern of memory that is kept, by its effect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum LeakClass { $($(#[doc = concat!("`", $name, "`: see [`Self::summary`].")] #[serde(rename = $name)] $variant,)*)* }

        impl LeakClass {
            /// Every class, in the order of their groups.
            pub const ALL: &'static [Self] = &[$($(Self::$variant,)*)*];

            /// Kebab-case name, as reports, rules and settings write it.
            pub const fn as_str(self) -> &'static str {
                match self { $($(Self::$variant => $name,)*)* }
            }

            /// One line on what is wrong.
            pub const fn summary(self) -> &'static str {
                match self { $($(Self::$variant => $summary,)*)* }
            }

            /// The group it belongs to.
            pub const fn group(self) -> Group {
                match self { $($(Self::$variant => Group::$group,)*)* }
            }
        }
    };
}

classes! {
    Graph {
        LossKeptWithGraph "loss-kept-with-graph" "a running sum, average or meter keeps the autograd graph of every loss",
        GraphKeptInContainer "graph-kept-in-container" "tensors are stored together with their autograd graphs",
        StateNotDetached "state-not-detached" "state is fed back without detach, so one graph reaches through all steps",
        GraphRetained "graph-retained" "graphs of finished backward passes are kept by retain_graph or create_graph",
        GradientsNeverCleared "gradients-never-cleared" "gradients add up because nothing clears them between steps",
        EvaluationWithGrad "evaluation-with-grad" "evaluation records autograd graphs that nobody uses",
        ContextAttributeTensor "context-attribute-tensor" "an autograd.Function stores tensors as attributes of ctx",
    }
    Container {
        UnboundedHistory "unbounded-history" "one entry after another is kept and never cut",
        GlobalAccumulation "global-accumulation" "a module-level container collects entries for the whole run",
        StepOutputsNotCleared "step-outputs-not-cleared" "step outputs are collected on the module and never cleared",
        UnboundedCache "unbounded-cache" "a cache without a bound is filled with keys that do not come back",
        CachedMethod "cached-method" "a functools cache on a method keeps every instance and result",
        CacheKeyedByTensor "cache-keyed-by-tensor" "a cache is keyed by tensors, which never compare as the same key",
        UnboundedQueue "unbounded-queue" "a queue without a bound is filled faster than it is emptied",
        HookNeverRemoved "hook-never-removed" "hooks are registered again and again and never removed",
        CallbackKeepsTensor "callback-keeps-tensor" "stored functions keep the tensors that they captured",
        ExceptionKeepsFrames "exception-keeps-frames" "stored exceptions keep the frames that they passed through",
        LogRecordsKept "log-records-kept" "stored log records keep their arguments",
        OptimizerRecreated "optimizer-recreated" "optimizers are made again and the old ones are kept with their state",
        MutableDefaultGrows "mutable-default-grows" "a mutable default argument collects entries over all calls",
    }
    Reference {
        ReferenceCycle "reference-cycle" "objects that refer to each other wait for the collector",
        ViewPinsStorage "view-pins-storage" "a small view keeps a large storage alive",
        DeviceTensorKept "device-tensor-kept" "tensors are kept on the device although they are done with",
    }
    Figure {
        FigureNotClosed "figure-not-closed" "figures are drawn and never closed",
        PlotEveryEpoch "plot-every-epoch" "figures are drawn every epoch although one at the end would do",
    }
    Loading {
        WorkerMemoryGrows "worker-memory-grows" "DataLoader workers keep more with every batch",
        WorkerCopyOnWrite "worker-copy-on-write" "reading shared Python objects copies them into every worker",
        LoaderPerEpoch "loader-per-epoch" "a DataLoader is made anew every epoch",
        WorkersOversubscribed "workers-oversubscribed" "more workers than the machine has use for",
        PinnedMemoryUnneeded "pinned-memory-unneeded" "batches are pinned although no GPU reads them",
    }
    Media {
        WholeVideoLoad "whole-video-load" "a whole video is decoded although a few frames are used",
        RowsKeptUntilEnd "rows-kept-until-end" "rows are gathered in memory and written only at the end",
        AugmentationPerFold "augmentation-per-fold" "augmented data are made and kept anew for every fold",
        UnseededAugmentation "unseeded-augmentation" "augmentations differ from run to run",
    }
    Peak {
        LargeLocalKept "large-local-kept" "large temporaries live to the end of a function",
        NoReleaseAfterValidation "no-release-after-validation" "nothing is released after validation",
        CleanupAsPlaster "cleanup-as-plaster" "cleanup in every step hides a leak and costs time",
    }
    Resource {
        SharedMemoryLeft "shared-memory-left" "shared memory segments are left behind",
        OrphanProcess "orphan-process" "child processes outlive their use",
        FileHandlesGrow "file-handles-grow" "files are opened and not closed",
        ThreadNeverEnds "thread-never-ends" "threads are started and never end",
        ProfilerLeftOn "profiler-left-on" "a profiler or recorder collects events for the whole run",
    }
    RunTime {
        CallsRecorded "calls-recorded" "a mock records every call with its arguments",
        NativeGrowth "native-growth" "memory grows that no Python object accounts for",
        AllocatorFragmentation "allocator-fragmentation" "memory in use is flat but the allocator cannot give pages back",
    }
}

impl std::fmt::Display for LeakClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for LeakClass {
    type Err = UnknownClass;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|class| class.as_str() == name)
            .ok_or_else(|| UnknownClass(name.into()))
    }
}

/// A name that is no leak class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownClass(pub String);

impl std::fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown leak class `{}`", self.0)
    }
}

impl std::error::Error for UnknownClass {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_come_back() {
        for class in LeakClass::ALL {
            let name = class.as_str();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert_eq!(name.parse(), Ok(*class));
            assert_eq!(serde_json::to_string(class).expect("a unit variant"), format!("\"{name}\""));
        }
        assert!("made-up".parse::<LeakClass>().is_err());
    }
}
