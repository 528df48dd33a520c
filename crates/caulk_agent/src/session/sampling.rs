//! The heap sampler, and what the report must know about it.

use caulk_wire::NoteCode;
use caulk_wire::heap::Refusal;
use pyo3::prelude::*;

use super::Session;
use crate::heap_profile::{self, Sampler};

impl Session {
    /// Lets the heap sampler begin, where it is loaded.
    pub(super) fn begin_sampling(&mut self, py: Python<'_>) {
        let Some((sampler, refusal)) = Sampler::begin(py) else {
            if heap_profile::was_left_out() {
                let text = "no lines are named for memory that native code allocates: the heap sampler was not loaded, as in \
                            programs that run with more rights than their user (setuid, capabilities of a file)";
                self.note(NoteCode::HeapNotLoaded, text);
            }
            return;
        };
        self.sampler = Some(sampler);
        self.counts_arenas = refusal == Refusal::None;
        if heap_profile::has_debug_pymalloc() {
            let text = "small Python objects are not in the heap profile: Python checks each of them (`PYTHONMALLOC=debug`, \
                        `-X dev`), in ways that allow nobody else between";
            self.note(NoteCode::HeapWithoutSmallObjects, text);
        }
        if let Some(reason) = why_no_lines(refusal) {
            let text = format!("no lines are named for memory that native code allocates: {reason}");
            self.note(NoteCode::HeapWithoutStacks, &text);
        }
    }
}

fn why_no_lines(refusal: Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::None => return None,
        Refusal::NoPython | Refusal::UnknownVersion => "the frames of this version of Python are not known",
        Refusal::SelfCheck => "the frames of this build of Python are not where its version has them",
        Refusal::NotFirst => {
            "another allocator is preloaded before caulk's sampler; leave LD_PRELOAD to `caulk run`, which keeps what \
             is in it"
        }
        Refusal::FreeThreaded => "this build of Python runs without a global interpreter lock",
    })
}
