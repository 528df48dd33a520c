//! One name, one public type: two crates never give the same name to different things.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use proc_macro2::{TokenStream, TokenTree};

use crate::console::failure;
use crate::tokens::after_attribute;
use crate::workspace::Workspace;

/// Names that two crates still share. The list may only get shorter.
const KNOWN: &[&str] = &["Growth", "Owner", "Place"];

/// Fails with every public type whose name another crate uses too.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for krate in folder(&workspace.path("crates"))? {
        let name = krate.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for file in rust_files(&krate.join("src"))? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
            for kind in public_types(&text) {
                crates.entry(kind).or_default().insert(name.clone());
            }
        }
    }
    crates.retain(|_, owners| owners.len() > 1);
    let wrong = wrong(&crates);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(failure(
        format!("one name stands for one public type:\n  {}", wrong.join("\n  ")),
        "name each by what it is; `docs/glossary.md` has the words",
    ))
}

/// One text for each shared name that is not known, and for each known one that is not shared.
fn wrong(shared: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let new = shared.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str())).map(|(name, owners)| {
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        format!("`{name}` is a type of {}", owners.join(" and of "))
    });
    let gone = KNOWN.iter().filter(|name| !shared.contains_key(**name));
    new.chain(gone.map(|name| format!("`{name}` is no longer shared: take it off the list in names.rs")))
        .collect()
}

/// Names of the types and traits that a source declares with `pub`, test code left out.
fn public_types(text: &str) -> Vec<String> {
    let Ok(tokens) = TokenStream::from_str(text) else { return Vec::new() };
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let word = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(word)) => word.to_string(),
        _ => String::new(),
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if matches!(&tokens[at], TokenTree::Punct(mark) if mark.as_char() == '#') {
            at = after_attribute(&tokens, at);
            continue;
        }
        if word(at) == "pub" && ["struct", "enum", "trait", "type", "union"].contains(&word(at + 1).as_str())
        {
            found.push(word(at + 2));
        }
        at += 1;
    }
    found
}

fn folder(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).with_context(|| format!("failed to read `{}`", path.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The Rust sources in a folder and in those below it.
pub(crate) fn rust_files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in folder(path)? {
        if entry.is_dir() {
            files.extend(rust_files(&entry)?);
        } else if entry.extension().is_some_and(|end| end == "rs") {
            files.push(entry);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_types_are_found() {
        let text = "pub struct A { pub b: u8 }\npub(crate) enum B {}\npub fn c() {}\npub trait D {}\n\
                    #[cfg(test)]\nmod tests { pub struct E; }\nstruct F;\n/// `pub struct G`\npub type H = u8;";
        assert_eq!(public_types(text), ["A", "D", "H"]);
    }

    #[test]
    fn a_shared_name_is_named_with_its_crates() {
        let mut shared = BTreeMap::new();
        for name in KNOWN.iter().copied().chain(["Plan"]) {
            shared.insert(name.to_owned(), BTreeSet::from(["one".to_owned(), "two".to_owned()]));
        }
        assert_eq!(wrong(&shared), ["`Plan` is a type of one and of two"]);
        shared.remove("Plan");
        shared.remove(KNOWN[0]);
        assert_eq!(wrong(&shared).len(), 1);
    }
}
