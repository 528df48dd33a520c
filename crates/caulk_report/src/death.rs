//! How the run ended, where that is the first thing to say.

use caulk_core::{Bytes, Death, Ending, EndingKind, Kill};

use crate::Report;
use crate::page::Tone;
use crate::refused;
use crate::words;
use crate::words::sentence_case;

/// A sentence and what it was told by.
pub(crate) struct End {
    pub(crate) tone: Tone,
    pub(crate) sentence: String,
    pub(crate) detail: String,
}

/// The end in words; `None` where the program ended well.
pub(crate) fn end(report: &Report) -> Option<End> {
    let after = format!("after {}", words::seconds(report.summary.duration_s));
    let Some(death) = &report.info.death else {
        let sentence = if report.running {
            format!("Still running, {after}; this is what was recorded so far.")
        } else {
            format!("The end was not seen: caulk itself was killed. This is what was recorded until {after} of run time.")
                .replace("until after", "until")
        };
        return Some(End { tone: Tone::Warn, sentence, detail: String::new() });
    };
    if death.stopped {
        let sentence = format!("caulk ended the program {after}: {}.", death.text);
        return Some(End { tone: Tone::Plain, sentence, detail: String::new() });
    }
    let (tone, sentence) = match (death.kill, death.signal, death.code) {
        (Some(Kill::Oom), None, code) => {
            let code =
                code.map_or(String::new(), |code| format!("; the command then exited with code {code}"));
            (
                Tone::Bad,
                format!("The kernel killed one of its processes {after}, because memory ran out{code}."),
            )
        }
        (Some(Kill::Oom), ..) => (Tone::Bad, format!("Killed by the kernel {after}: memory ran out.")),
        (Some(Kill::ProbablyOom), ..) => {
            (Tone::Bad, format!("Killed {after}, most likely by the kernel because memory ran out."))
        }
        (_, Some(2), _) => (Tone::Warn, format!("Stopped by Ctrl-C {after}.")),
        (kill, Some(number), _) => (Tone::Bad, signal(number, kill, &after)),
        (_, None, Some(0)) => return None,
        (_, None, Some(code)) => (Tone::Warn, failed(report.ending.as_ref(), code, &after)),
        (_, None, None) => (Tone::Warn, format!("The program ended {after}; how is not known.")),
    };
    // By what a killer was told, or a shell's way of saying that its child was killed; else the sentence has it all.
    let telling = death.kill.is_some() || death.code.is_none_or(|code| code > 128) && death.signal.is_none();
    let detail = if let Some(gpu) = report.ending.as_ref().and_then(|ending| ending.gpu.as_ref()) {
        refused::details(gpu)
    } else if telling && !death.text.trim().is_empty() {
        sentence_case(&death.text)
    } else {
        String::new()
    };
    Some(End { tone, sentence, detail })
}

/// The end of a program that failed by itself: by its error, where that was seen.
fn failed(ending: Option<&Ending>, code: i32, after: &str) -> String {
    let name = ending.and_then(|ending| ending.exception.as_deref());
    let asked = ending.and_then(|ending| ending.asked_bytes);
    let asked = asked.map_or_else(String::new, |bytes| format!(" as it asked for {}", Bytes(bytes)));
    match (ending.map(|ending| ending.kind), name) {
        (Some(EndingKind::MemoryError), Some(name)) => {
            let limit = ending.and_then(|ending| ending.limit);
            let limit = limit.map_or_else(String::new, |limit| format!(", at {}", words::limit(limit)));
            format!("The program ran out of memory {after}{asked}{limit}: {name}.")
        }
        (Some(EndingKind::CudaOutOfMemory), Some(name)) => {
            let gpu = ending.and_then(|ending| ending.gpu.as_ref());
            format!(
                "The GPU ran out of memory {after}{}{}: {name}.",
                asked.replace("it asked", "the program asked"),
                gpu.map_or_else(String::new, refused::place)
            )
        }
        (Some(EndingKind::Exception), Some(name)) => {
            format!("The program failed {after}: {name}, exit code {code}.")
        }
        _ => format!("The program failed {after}: exit code {code}."),
    }
}

fn signal(number: i32, kill: Option<Kill>, after: &str) -> String {
    let name = words::signal(number);
    match (number, kill) {
        (4 | 6 | 7 | 8 | 11, _) => format!("The program crashed with {name} {after}."),
        (9, Some(Kill::NotOom)) => format!("Killed with {name} {after}, not for lack of memory."),
        (9, _) => format!("Killed with {name} {after}; by whom is not known."),
        _ => format!("Ended by {name} {after}."),
    }
}

/// Whether memory running out ended it.
pub(crate) fn out_of_memory(report: &Report) -> bool {
    let killed = matches!(report.info.death, Some(Death { kill: Some(Kill::Oom | Kill::ProbablyOom), .. }));
    let refused =
        |ending: &Ending| matches!(ending.kind, EndingKind::MemoryError | EndingKind::CudaOutOfMemory);
    killed || report.ending.as_ref().is_some_and(refused)
}
