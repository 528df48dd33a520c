//! Where records go: into a folder, or where there is no place for one, into memory.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{AgentEvent, GpuSample, ProcessRecord, Recording, RunInfo, Sample, SystemSample};
use caulk_record::{RecordingInMemory, WriteError, Writer};

/// A recording that is being made.
pub(super) enum Store {
    Folder { writer: Box<Writer>, folder: Utf8PathBuf, before: HashSet<OsString> },
    Memory(Box<RecordingInMemory>),
}

/// One that was made.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// It lies in this folder.
    Folder(Utf8PathBuf),
    /// It is nowhere else.
    Memory(Box<Recording>),
}

impl Recorded {
    /// Where it lies, if it does.
    pub(crate) fn folder(&self) -> Option<&Utf8Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Memory(_) => None,
        }
    }

    /// The recording itself.
    ///
    /// # Errors
    /// If it lies in a folder and cannot be read.
    pub(crate) fn read(self) -> Result<Recording, caulk_record::ReadError> {
        match self {
            Self::Folder(folder) => caulk_record::read(&folder),
            Self::Memory(recording) => Ok(*recording),
        }
    }
}

impl Store {
    /// Begins a recording in a folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn create(folder: &Utf8Path, info: &RunInfo) -> Result<Self, WriteError> {
        let before = names(folder);
        let writer = Box::new(Writer::create(folder, info)?);
        Ok(Self::Folder { writer, folder: folder.to_owned(), before })
    }

    /// Removes the recording of a command that never started.
    pub(super) fn discard(self) {
        let Self::Folder { writer, folder, before } = self else { return };
        drop(writer);
        // What cannot be removed is an empty recording, which does no harm. What lay there before is not ours to remove.
        for name in names(&folder).difference(&before) {
            let _ = fs::remove_file(folder.as_std_path().join(name));
        }
        if before.is_empty() {
            let _ = fs::remove_dir(&folder);
        }
    }

    /// Completes it. What could not be written comes beside it.
    pub(super) fn finish(self, info: &RunInfo) -> (Recorded, Result<(), WriteError>) {
        match self {
            Self::Folder { writer, folder, .. } => {
                let result = writer.finish(info);
                (Recorded::Folder(folder), result)
            }
            Self::Memory(held) => (Recorded::Memory(Box::new(held.finish(info))), Ok(())),
        }
    }

    pub(super) fn update_info(&mut self, info: &RunInfo) -> Result<(), WriteError> {
        match self {
            Self::Folder { writer, .. } => writer.update_info(info),
            Self::Memory(_) => Ok(()),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Folder { writer, .. } => writer.flush(),
            Self::Memory(held) => {
                held.tidy();
                Ok(())
            }
        }
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        match self {
            Self::Folder { writer, .. } => writer.sample(sample),
            Self::Memory(held) => held.sample(sample),
        }
    }

    pub(super) fn system(&mut self, sample: &SystemSample) {
        match self {
            Self::Folder { writer, .. } => writer.system(sample),
            Self::Memory(held) => held.system(sample),
        }
    }

    pub(super) fn gpu(&mut self, sample: &GpuSample) {
        match self {
            Self::Folder { writer, .. } => writer.gpu(sample),
            Self::Memory(held) => held.gpu(sample),
        }
    }

    pub(super) fn process(&mut self, record: &ProcessRecord) {
        match self {
            Self::Folder { writer, .. } => writer.process(record),
            Self::Memory(held) => held.process(record),
        }
    }

    pub(super) fn event(&mut self, event: &AgentEvent) {
        match self {
            Self::Folder { writer, .. } => writer.event(event),
            Self::Memory(held) => held.event(event),
        }
    }
}

fn names(folder: &Utf8Path) -> HashSet<OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}
