//! Secrets out of command lines and environments.
//!
//! Found by name (`--api-key X`, `DB_PASS=X`, `model.password: X`, also inside shell and Python text), by place
//! (`https://user:password@host`, `?signature=X`, `Bearer X`), or by look (`hf_...`, `sk-...`, a JSON web token). In
//! doubt, hidden: a report reads as well without the value of `--pad-token`. Options of one letter (`-p X`) have no name
//! to go by and stay.

mod names;
mod values;

use names::{is_folder, is_secret};
use values::Span;

/// What stands for a secret.
const HIDDEN: &str = "***";

/// Beginnings of well-known tokens.
const PREFIXES: [&str; 16] = [
    "hf_",
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "AKIA",
    "AIza",
    "npm_",
    "pypi-",
];

/// Letters after which such a beginning is believed.
const LONG_ENOUGH: usize = 16;

/// Words between a header's name and its secret, which stay.
const SCHEMES: [&str; 6] = ["apikey", "basic", "bearer", "digest", "negotiate", "token"];

/// The command with its secrets replaced by `***`. Redacting twice changes nothing more.
pub fn redact(command: &[String]) -> Vec<String> {
    let (mut after_secret, mut after_code) = (false, false);
    let redact_one = |argument: &String| {
        // `--use-auth-token --epochs 3`: a flag follows, not a value.
        let is_value = after_secret && !argument.starts_with('-');
        let redacted = match () {
            () if is_value => HIDDEN.to_owned(),
            () if after_code => redact_text(argument),
            () => redact_argument(argument),
        };
        (after_secret, after_code) = (is_secret_flag(argument), is_code_flag(argument));
        redacted
    };
    command.iter().map(redact_one).collect()
}

/// The value of an environment variable, or `***` if the name says that it is a secret; secrets inside it are replaced.
/// `PWD` and `OLDPWD` are folders.
pub fn redact_variable(name: &str, value: &str) -> String {
    let hidden = is_secret(name) && !is_folder(name) && !value.is_empty();
    if hidden { HIDDEN.to_owned() } else { redact_text(value) }
}

/// `--token`: the secret is the next argument. `--no-auth` takes none.
fn is_secret_flag(argument: &str) -> bool {
    argument.starts_with('-')
        && !argument.starts_with("--no-")
        && argument.bytes().all(is_name_byte)
        && is_secret(argument)
}

/// `-c`, `-lc`: the next argument is a text of its own language.
fn is_code_flag(argument: &str) -> bool {
    argument.strip_prefix('-').is_some_and(|letters| {
        letters.len() <= 4 && letters.ends_with('c') && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// One argument: `NAME=value`, `--env=NAME=value`, or any text.
fn redact_argument(argument: &str) -> String {
    let text = |argument| hide_value(argument).unwrap_or_else(|| redact_text(argument));
    match assignment(argument).filter(|(name, _)| name.starts_with('-') && !is_secret(name)) {
        Some((name, value)) => format!("{name}={}", text(value)),
        None => text(argument),
    }
}

/// `NAME=value`, `--name=value`, `+group/name@package=value` of a secret: the value is the rest, blanks and all.
fn hide_value(argument: &str) -> Option<String> {
    let (name, value) = assignment(argument)?;
    let hidden = is_secret(name) && !(is_folder(name) && value.starts_with('/'));
    hidden.then(|| format!("{name}={HIDDEN}"))
}

fn assignment(argument: &str) -> Option<(&str, &str)> {
    let named = |byte: u8| is_name_byte(byte) || b"+~/@[]".contains(&byte);
    let (name, value) = argument.split_once('=')?;
    (name.bytes().all(named) && !value.is_empty() && !value.starts_with('=')).then_some((name, value))
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Secrets inside a text: a shell command, Python code, JSON, a URL, a header.
fn redact_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // The quote in which `rest` begins.
    let mut enclosing: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        let length = rest.bytes().take_while(|byte| is_name_byte(*byte)).count();
        let (name, after) = rest.split_at(length);
        if name.is_empty() {
            let (kept, skipped) = user_information(rest).unwrap_or((&rest[..first.len_utf8()], 0));
            if matches!(first, '"' | '\'') && !out.ends_with('\\') {
                enclosing = if enclosing == Some(first) { None } else { enclosing.or(Some(first)) };
            }
            out += kept;
            rest = &rest[kept.len() + skipped..];
            if skipped > 0 {
                out += HIDDEN;
            }
            continue;
        }
        rest = after;
        if is_token(name) {
            out += HIDDEN;
            continue;
        }
        // `PWD=/folder command`, but not `Uid=me;PWD=/x1`.
        let is_first = out.is_empty() || out.ends_with([' ', '\t', '\n', '"', '\'', '(']);
        let is_path = after.strip_prefix('=').is_some_and(|value| value.starts_with(['/', '$']));
        let stays = is_folder(name) && is_first && is_path
            // `/run/secrets:ro`.
            || out.ends_with('/') && after.starts_with(':') && !after[1..].starts_with(' ');
        out += name;
        if let Some((between, length)) = secret_after(name, after, enclosing).filter(|_| !stays) {
            if between.ends_with(['"', '\'']) && !between.ends_with("\\\"") && !between.ends_with("\\'") {
                enclosing = between.chars().next_back();
            }
            out += between;
            out += HIDDEN;
            rest = &after[between.len() + length..];
        }
    }
    out
}

/// `://user:password@`: what to keep, and how many bytes to hide.
fn user_information(rest: &str) -> Option<(&str, usize)> {
    let authority = rest.strip_prefix("://")?;
    // It does not reach into another URL.
    let word = &authority[..authority.find("://").unwrap_or(authority.len())];
    let word = &word[..word.find(|c: char| "\"' \t\n".contains(c)).unwrap_or(word.len())];
    let end = word.find(['/', '?', '#']).unwrap_or(word.len());
    // A password may hold `@`: the last one counts.
    let at = word[..end].rfind('@').or_else(|| {
        // ... or `/`, though it should not. `host:80/` is no password.
        let (_, port) = word[..end].split_once(':')?;
        if port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) { None } else { word.rfind('@') }
    })?;
    Some((&rest[..3], at))
}

/// What lies between a secret's name and its value, and the length of the value.
fn secret_after<'a>(name: &str, after: &'a str, enclosing: Option<char>) -> Option<(&'a str, usize)> {
    let is_bearer = name.eq_ignore_ascii_case("bearer") || name.eq_ignore_ascii_case("basic");
    if !is_bearer && !is_secret(name) {
        return None;
    }
    let blank = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    // `'password': 'x'`, `environ["TOKEN"] = "x"`.
    let closing = after.len() - after.trim_start_matches(['"', '\'', ']', ')', '\\']).len();
    let mut start = closing + blank(&after[closing..]);
    let sign = after[start..].chars().next();
    // `==`, `:=`, `a::b`, `https://` are no assignments.
    let assigns = match sign {
        Some('=') => !after[start + 1..].starts_with('='),
        Some(':') => !after[start + 1..].starts_with(['=', ':', '/']),
        _ => false,
    };
    if assigns {
        start += 1;
        start += blank(&after[start..]);
    } else if !(closing == 0 && start > 0 && (is_bearer || name.starts_with('-'))) {
        return None;
    }
    let value = &after[start..];
    if value.starts_with('-') && name.starts_with('-') && start == blank(after) {
        return None; // Another flag.
    }
    if sign == Some(':') && is_port(name, &after[1..]) {
        return None;
    }
    let enclosing = enclosing.filter(|quote| !after[..closing].contains(*quote));
    if sign == Some(':') && closing == 0 && is_header(name) {
        start += SCHEMES.iter().find_map(|scheme| scheme_length(value, scheme)).unwrap_or(0);
        let Span { length, .. } = values::line(&after[start..], enclosing);
        return (length > 0).then(|| (&after[..start], length));
    }
    if SCHEMES[1..3].iter().any(|scheme| scheme_length(value, scheme).is_some()) {
        return None; // The next turn hides the rest.
    }
    let Span { before, length } = values::value(value, enclosing);
    (length > 0).then(|| (&after[..start + before], length))
}

/// `auth.example.org:8080`.
fn is_port(name: &str, value: &str) -> bool {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let ends = value[digits..].chars().next().is_none_or(|c| !c.is_alphanumeric());
    name.contains('.') && (1..=5).contains(&digits) && ends
}

/// Headers of requests, whose values may be several words.
fn is_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("x-") || lower.ends_with("authorization") || lower.ends_with("cookie")
}

/// Length of the scheme and the blanks behind it.
fn scheme_length(value: &str, scheme: &str) -> Option<usize> {
    let head = value.get(..scheme.len()).filter(|head| head.eq_ignore_ascii_case(scheme))?;
    let rest = &value[head.len()..];
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    (blanks > 0).then_some(head.len() + blanks)
}

/// Whether the word looks like a token of a service, or a JSON web token.
fn is_token(word: &str) -> bool {
    let is_known = |prefix: &&str| {
        let tail = word.strip_prefix(*prefix);
        tail.is_some_and(|tail| tail.len() >= LONG_ENOUGH && tail.bytes().any(|byte| byte.is_ascii_digit()))
    };
    let is_web_token = word.starts_with("eyJ") && word.len() > 40 && word.matches('.').count() == 2;
    is_web_token || PREFIXES.iter().any(is_known)
}

#[cfg(test)]
mod tests;
