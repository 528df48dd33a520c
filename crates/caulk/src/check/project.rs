//! One project as it is on disk and in an editor's buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Once;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::{CheckOutcome, Job};
use caulk_core::{LeakClass, Problem};
use caulk_python::SourceFile;
use caulk_source::{Document, Extent, Names, ProjectPaths};

use super::Settings;
use super::baseline::Known;
use super::cache::Cache;

/// Texts that replace those on disk, by absolute path.
pub(crate) type Buffers = BTreeMap<Utf8PathBuf, Vec<u8>>;

/// What one look at a project found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// What is new.
    pub(crate) outcome: CheckOutcome,
    /// Findings that the baseline knows.
    pub(crate) known: usize,
}

/// All files of a project, and which of them are reported on.
#[derive(Debug)]
pub(crate) struct Project {
    /// What files are called.
    pub(crate) names: Names,
    /// What is looked for.
    pub(crate) settings: Settings,
    /// Files by the names that the analysis uses.
    pub(crate) documents: BTreeMap<String, Document>,
    /// Files that are reported on.
    pub(crate) reported: BTreeSet<String>,
    /// What could not be read.
    pub(crate) problems: Vec<Problem>,
    /// What was found earlier; `None` for what is no project.
    cache: Option<Cache>,
}

impl Project {
    /// Reads the project of some paths.
    pub(crate) fn load(
        directory: &Utf8Path,
        group: &ProjectPaths,
        settings: Settings,
        buffers: &Buffers,
    ) -> Self {
        let names = Names::new(directory, &group.root.folder);
        let (mut files, mut problems) = caulk_source::files(&group.root, &settings.excludes);
        let wanted = |file: &Utf8Path| group.named.iter().any(|named| file.starts_with(named));
        let kept = |file: &Utf8Path| !(settings.force_exclude && settings.excludes.matches(file, false));
        // A file that is ignored or has another ending is looked at where it is named itself.
        let named = group.named.iter().filter(|named| !named.is_dir() || buffers.contains_key(*named));
        files.extend(named.filter(|file| kept(file)).cloned());
        files.sort();
        files.dedup();
        let reported: BTreeSet<Utf8PathBuf> = files.iter().filter(|file| wanted(file)).cloned().collect();
        let (documents, unread) = read(&files, buffers);
        // What is not reported on may be as broken as it likes.
        problems.retain(|problem| wanted(problem.file.as_str().into()));
        problems.extend(unread.into_iter().filter(|problem| reported.contains(Utf8Path::new(&problem.file))));
        for problem in &mut problems {
            problem.file = names.shown(&names.internal(problem.file.as_str().into()));
        }
        let documents: BTreeMap<String, Document> =
            documents.into_iter().map(|document| (names.internal(&document.path), document)).collect();
        let mut reported: BTreeSet<String> = reported.iter().map(|file| names.internal(file)).collect();
        reported.retain(|file| documents.contains_key(file));
        let whole = group.root.extent == Extent::Folder;
        let cache = if whole { Cache::of(&group.root.folder) } else { None };
        Self { names, settings, documents, reported, problems, cache }
    }

    /// Replaces the texts of some files, as if they had been read so.
    pub(crate) fn set(&mut self, texts: &BTreeMap<String, String>) {
        for (file, text) in texts {
            if let Some(document) = self.documents.get_mut(file).filter(|document| document.text != *text) {
                document.text.clone_from(text);
            }
        }
    }

    /// Those of some files that belong to the project, and what they import of it.
    pub(crate) fn imported_by(&self, files: impl IntoIterator<Item = Utf8PathBuf>) -> BTreeSet<String> {
        let sources = caulk_python::Project::new(self.sources());
        let known = files.into_iter().filter_map(|file| sources.find(&self.names.internal(&file)));
        sources.imported_by(known).into_iter().map(|file| sources.file(file).path().to_owned()).collect()
    }

    fn sources(&self) -> impl Iterator<Item = SourceFile> {
        let source = |(path, document): (&String, &Document)| SourceFile {
            path: path.clone(),
            text: document.text.clone(),
        };
        self.documents.iter().map(source)
    }

    /// What is asked of the engine.
    pub(crate) fn job(&self) -> Job<'_> {
        Job {
            sources: self.sources().collect(),
            reported: self.reported.clone(),
            selection: &self.settings.selection,
            off: self.off(),
        }
    }

    /// What is found that the baseline does not know, in the names of the analysis, and how many it knows.
    pub(crate) fn check(&self, known: Option<&Known>) -> Found {
        self.found(caulk_check::check(self.job()), known)
    }

    /// The same, from an earlier check where nothing has changed since.
    pub(crate) fn check_cached(&self, known: Option<&Known>) -> Found {
        let Some(cache) = &self.cache else { return self.check(known) };
        self.found(cache.get(self.job(), caulk_check::check), known)
    }

    fn found(&self, mut outcome: CheckOutcome, known: Option<&Known>) -> Found {
        let on_disk = |file: &str| self.names.on_disk(file);
        let known = known.map_or(0, |known| known.take_out(&mut outcome.diagnostics, on_disk));
        Found { outcome, known }
    }

    fn off(&self) -> BTreeMap<String, BTreeSet<LeakClass>> {
        let off = |file: &String| (file.clone(), self.settings.off(&self.names.on_disk(file)));
        self.reported.iter().map(off).filter(|(_, classes)| !classes.is_empty()).collect()
    }
}

/// Has the threads that read files leave all signals to the one that may supervise a command later: a signal which another
/// thread takes never reaches the command.
fn prepare_readers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let pool = rayon::ThreadPoolBuilder::new().start_handler(|_| {
            // A thread that may not do so is as good as one that did not try.
            let _ = caulk_supervise::leave_signals();
        });
        // Fails if somebody has made it before.
        let _ = pool.build_global();
    });
}

/// Reads files, those in buffers from there.
fn read(files: &[Utf8PathBuf], buffers: &Buffers) -> (Vec<Document>, Vec<Problem>) {
    let on_disk: Vec<Utf8PathBuf> =
        files.iter().filter(|file| !buffers.contains_key(*file)).cloned().collect();
    prepare_readers();
    let (mut documents, mut problems) = caulk_source::read(&on_disk);
    for file in files {
        match buffers.get(file).map(|bytes| Document::new(file, bytes)) {
            Some(Ok(document)) => documents.push(document),
            Some(Err(problem)) => problems.push(problem),
            None => (),
        }
    }
    (documents, problems)
}
