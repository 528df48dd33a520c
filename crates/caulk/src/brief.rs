//! Commands in as little room as there is.

use std::path::Path;

/// The command as a shell would take it.
pub(crate) fn joined(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// The command without the folders that its program and its script lie in.
pub(crate) fn brief(words: &[String]) -> String {
    let mut words = words.to_vec();
    let is_script = |word: &String| Path::new(word).extension().is_some_and(|extension| extension == "py");
    let script = words.iter().skip(1).position(is_script).map(|at| at + 1);
    for (at, word) in words.iter_mut().enumerate() {
        if at == 0 || Some(at) == script {
            *word = word.rsplit('/').next().unwrap_or_default().to_owned();
        }
    }
    joined(&words)
}

/// At most `room` characters on one line, safe for a terminal.
pub(crate) fn clip(text: &str, room: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.chars().count() <= room {
        return plain;
    }
    plain.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}
