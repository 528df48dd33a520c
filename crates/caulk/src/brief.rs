//! Commands in as little room as there is.

use std::path::Path;

/// The command as a shell would take it.
pub(crate) fn joined(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// One word of it.
pub(crate) fn quoted(word: &str) -> String {
    joined(&[word.to_owned()])
}

/// The command without the folders that its program and its script lie in.
pub(crate) fn brief(words: &[String]) -> String {
    let mut words = words.to_vec();
    let is_script = |word: &str| Path::new(word).extension().is_some_and(|extension| extension == "py");
    // What follows these is no script's path; an option may have one as its value.
    let before = words.iter().position(|word| word == "-m" || word == "-c").unwrap_or(words.len());
    let mut scripts = (1..before).filter(|at| is_script(&words[*at]) && !words[*at].starts_with('-'));
    let script = scripts.find(|at| !words[*at - 1].starts_with("--"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_and_script_have_no_folders() {
        let check = |command: &str, expected: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(brief(&words), expected);
        };
        check("/opt/bin/python ../jobs/train.py --data /data/a.csv", "python train.py --data /data/a.csv");
        check("python -u a/train.py --config b/c.py", "python -u train.py --config b/c.py");
        check("torchrun --config /etc/c.py a/train.py", "torchrun --config /etc/c.py train.py");
        check("python -m tool.train /cfg/a.py", "python -m tool.train /cfg/a.py");
        check("bash", "bash");
    }
}
