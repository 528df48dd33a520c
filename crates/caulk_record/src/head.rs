//! `run.json`: who ran what, where, under which limits, and how it ended.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};

use camino::Utf8Path;
use caulk_core::RunInfo;
use serde_json::{Map, Value};

use crate::{ReadError, private, redact, redact_variable};

/// File name.
pub(crate) const HEAD: &str = "run.json";

/// The head as it is written: of this schema, without secrets.
pub(crate) fn cleaned(info: &RunInfo) -> RunInfo {
    let mut info = RunInfo { schema: crate::SCHEMA, ..info.clone() };
    hide(&mut info);
    info
}

fn hide(info: &mut RunInfo) {
    info.target.command = redact(&info.target.command);
    for (name, value) in &mut info.target.environment {
        *value = redact_variable(name, value);
    }
}

/// Writes the head so that readers see the old or the new one. Where the disk is too full for both, the new one goes
/// over the old one, in the space that it has.
pub(crate) fn write(folder: &Utf8Path, info: &RunInfo) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(info)?;
    bytes.push(b'\n');
    let path = folder.join(HEAD);
    private::write_file(&path, &bytes).or_else(|error| overwrite(&path, &bytes).map_err(|_| error))
}

fn overwrite(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let old = fs::read(path)?;
    file.write_all(bytes).and_then(|()| file.set_len(bytes.len() as u64)).inspect_err(|_| {
        // Back to the old one, whose space is there.
        let _ = fs::write(path, &old);
    })
}

/// Reads the head; of a damaged one, what is left of it. `None` where there is no file.
///
/// # Errors
/// [`ReadError::Open`] if the file is there and cannot be opened, [`ReadError::Newer`] if a later version wrote it.
pub(crate) fn read(folder: &Utf8Path, problems: &mut Vec<String>) -> Result<Option<RunInfo>, ReadError> {
    let path = folder.join(HEAD);
    let bytes = match crate::ring::read_bounded(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ReadError::Open { path, source }),
    };
    let text = String::from_utf8_lossy(&bytes);
    let value: Result<Map<String, Value>, _> = serde_json::from_str(&text);
    let map = value.unwrap_or_else(|error| {
        problems.push(format!("`{path}` is damaged: {error}"));
        salvage(&text)
    });
    let schema = map.get("schema").and_then(Value::as_u64).unwrap_or(0);
    if schema > u64::from(crate::SCHEMA) {
        let caulk = map.get("caulk").and_then(Value::as_str).unwrap_or("of another version").to_owned();
        return Err(ReadError::Newer { path: folder.to_owned(), schema, caulk });
    }
    let mut info = overlay(map, &path, problems);
    // An earlier version may have known fewer secrets.
    hide(&mut info);
    Ok(Some(info))
}

/// The keys that can be read one by one: the head is written with each on a line of its own, indented by two.
fn salvage(text: &str) -> Map<String, Value> {
    let starts: Vec<usize> = text.match_indices("\n  \"").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let blocks = starts.iter().zip(ends).map(|(start, end)| text[*start..end].trim());
    let parse = |block: &str| {
        let block = block.strip_suffix('}').filter(|block| block.ends_with('\n')).unwrap_or(block);
        serde_json::from_str::<Map<String, Value>>(&format!("{{{}}}", block.trim().trim_end_matches(',')))
            .ok()
    };
    blocks.filter_map(parse).flatten().collect()
}

/// The default head, with the keys that are there and fit.
fn overlay(map: Map<String, Value>, path: &Utf8Path, problems: &mut Vec<String>) -> RunInfo {
    let mut info = RunInfo::default();
    let Ok(Value::Object(mut whole)) = serde_json::to_value(&info) else {
        return info;
    };
    for (key, value) in map {
        let Some(old) = whole.get(&key).cloned() else {
            continue; // A later version's.
        };
        whole.insert(key.clone(), value);
        match serde_json::from_value(Value::Object(whole.clone())) {
            Ok(new) => info = new,
            Err(error) => {
                problems.push(format!("`{key}` of `{path}` cannot be read: {error}"));
                whole.insert(key, old);
            }
        }
    }
    info
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use caulk_core::wire::NoteCode;
    use caulk_core::{Death, Limits, Note, Target};

    fn info() -> RunInfo {
        RunInfo {
            schema: crate::SCHEMA,
            caulk: "0.1.0".into(),
            id: "x".into(),
            target: Target {
                command: vec!["python".into(), "a b.py".into()],
                directory: "/tmp".into(),
                host: "h".into(),
                environment: vec![("LANG".into(), "C".into())],
            },
            started: "2026-11-21T10:00:00+01:00".into(),
            limits: Limits { physical_bytes: 7, ..Limits::default() },
            death: Some(Death {
                code: Some(1),
                signal: None,
                kill: None,
                text: "exited".into(),
                stopped: false,
            }),
            notes: vec![Note::new(NoteCode::NoAgent, "one")],
            ..RunInfo::default()
        }
    }

    fn check(damage: impl Fn(&str) -> String) -> (RunInfo, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        write(folder, &info()).unwrap();
        let text = fs::read_to_string(folder.join(HEAD)).unwrap();
        fs::write(folder.join(HEAD), damage(&text)).unwrap();
        let mut problems = Vec::new();
        (read(folder, &mut problems).unwrap().unwrap(), problems)
    }

    #[test]
    fn the_head_comes_back() {
        assert_eq!(check(str::to_owned), (info(), Vec::new()));
    }

    #[test]
    fn secrets_that_an_earlier_version_wrote_are_not_read() {
        let (read, _) =
            check(|text| text.replace("\"a b.py\"", "\"--db-pass=x\"").replace("LANG", "DB_PASS"));
        assert_eq!(read.target.command, ["python", "--db-pass=***"]);
        assert_eq!(read.target.environment, [("DB_PASS".to_owned(), "***".to_owned())]);
    }

    #[test]
    fn keys_of_other_versions_do_no_harm() {
        let (read, problems) =
            check(|text| text.replacen('{', "{\"later\": [1],", 1).replace("\"id\": \"x\",", ""));
        assert_eq!(read, RunInfo { id: String::new(), ..info() });
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn notes_of_earlier_versions_are_texts() {
        let (read, problems) = check(|text| {
            let from = text.find("\"notes\"").unwrap();
            format!("{}\"notes\": [\"guard: asks\", \"no numpy\"]\n}}\n", &text[..from])
        });
        let notes = [Note::new(NoteCode::Guard, "guard: asks"), Note::new(NoteCode::Unnamed, "no numpy")];
        assert_eq!((read.notes, problems), (notes.to_vec(), Vec::<String>::new()));
    }

    #[test]
    fn of_a_damaged_head_the_rest_comes_back() {
        let (read, problems) = check(|text| text[..text.find("\"notes\"").unwrap()].to_owned());
        assert_eq!(read, RunInfo { notes: Vec::new(), ..info() });
        assert_eq!(problems.len(), 1, "{problems:?}");
        let (read, _) = check(|text| text.replace("\"host\"", "\"host"));
        assert_eq!(read, RunInfo { target: Target::default(), ..info() });
        let (read, _) = check(|text| text.replace("\"x\"", "7"));
        assert_eq!(read, RunInfo { id: String::new(), ..info() });
    }

    #[test]
    fn a_new_head_replaces_the_old_one_in_its_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join(HEAD);
        fs::write(&path, "a longer text than the new one").unwrap();
        overwrite(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
